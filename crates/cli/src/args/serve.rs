//! What a user may type after `serve`.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use super::{ModelChoice, at_least_one};

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox serve                                             the built-in model at http://127.0.0.1:4747/v1
  glassbox serve -m model.gguf --name my-model --slots 8
  glassbox test evidence -m \"http://127.0.0.1:4747/v1#specimen\"   a suite against it, from another terminal
  curl http://127.0.0.1:4747/v1/completions -H \"Content-Type: application/json\" -d '{\"prompt\": \"Once\", \"max_tokens\": 8}'

Served are POST /v1/chat/completions and /v1/completions, in one piece or as a stream, with log-probabilities; GET /v1/models; GET /health.
A field that is not served is refused, never dropped. An answer has the same bits whatever else is asked at the same time.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    /// The address to listen at; beyond this machine only with a key
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value = "4747")]
    pub(crate) port: u16,
    /// The name by which clients ask for the model; by default that of the file or folder
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Tokens of a prompt and its answer together; by default what the model was made for, at most 8192
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    pub(crate) context: Option<NonZeroUsize>,
    /// Answers that are made at a time
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one)]
    pub(crate) slots: NonZeroUsize,
    /// Answers that may wait beyond those; more are refused with 429
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub(crate) queue: NonZeroUsize,
    /// Environment variable that holds the key which clients must send; an unset one asks for none
    #[arg(long, value_name = "VARIABLE", default_value = "GLASSBOX_SERVER_KEY")]
    pub(crate) key_env: String,
    /// Tell the address as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
