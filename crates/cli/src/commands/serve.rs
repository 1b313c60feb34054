//! `serve`: a model for clients of the OpenAI interface.

use std::net::SocketAddr;
use std::path::Path;

use glassbox_server::{ServerError, Settings};
use serde::Serialize;

use crate::args::Serve;
use crate::exit::{Exit, Failure};
use crate::opened::Opened;
use crate::{Outcome, signals, terminal};

/// Tokens that are served by default at most: a cache of more is a wish to be spoken.
const CONTEXT_TOKENS: usize = 8192;

/// The document of `--json`, told once the server listens.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    base: &'a str,
    model: &'a str,
    context: usize,
    slots: usize,
}

pub(crate) fn run(command: &Serve) -> Outcome {
    signals::listen();
    let key = std::env::var(&command.key_env).ok().filter(|key| !key.is_empty());
    if !command.host.is_loopback() && key.is_none() {
        let message = anyhow::anyhow!("{} can be reached from other machines; wanted a key that clients must send", command.host);
        return Err(Failure::usage(message).hint(format!("put one into the environment variable {}", command.key_env)));
    }
    let opened = Opened::open(&command.model)?;
    let context = command.context.map_or_else(|| opened.made_for().min(CONTEXT_TOKENS), |tokens| tokens.get());
    let name = command.name.clone().unwrap_or_else(|| short_name(&opened.name));
    let settings = Settings {
        address: SocketAddr::new(command.host, command.port),
        slots: command.slots.get(),
        waiting: command.queue.get(),
        cache_limit_bytes: opened.memory_limit,
        key,
    };
    let description = opened.description();
    let offer = opened.into_offer(name.clone(), context)?;
    let mut told = Ok(());
    glassbox_server::serve(offer, &settings, signals::interrupted(), |address| {
        let base = format!("http://{address}/v1");
        told = if command.json {
            let (slots, model) = (settings.slots, name.as_str());
            terminal::print_json(&Document { format: "glassbox-server", version: 1, base: &base, model, context, slots })
        } else {
            let place = format!("{name}: {description}\n{context} tokens, {} at a time\n\n{base}\n", settings.slots);
            terminal::print_told(&place).map_err(Failure::from)
        };
    })
    .map_err(failure)?;
    told?;
    Ok(Exit::Success)
}

fn failure(error: ServerError) -> Failure {
    match error {
        ServerError::Listen { .. } => {
            Failure::usage(error).hint("another program listens there, or you may not: `--port 0` takes a free port")
        }
        ServerError::Memory { .. } => Failure::usage(error).hint("give a smaller --context, fewer --slots, or a smaller --kv-type"),
        error => Failure::internal(error),
    }
}

/// The last part of a path without its ending; another name as it is.
fn short_name(name: &str) -> String {
    let path = Path::new(name);
    let of_file = if path.is_file() { path.file_stem() } else { path.file_name() };
    of_file.filter(|_| path.exists()).map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}
