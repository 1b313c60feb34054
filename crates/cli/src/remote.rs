//! A subject behind an address, or in an earlier run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use glassbox_endpoint::{Address, Api, Budget, Client, Clock, Prices, Secret, Settings, SystemClock};
use glassbox_record::{FailureClass, RunReader};
use glassbox_subject::{RecordedSubject, RemoteSubject, Subject, SubjectError};

use crate::args::{ApiChoice, EndpointChoice};
use crate::exit::Failure;
use crate::{signals, terminal};

/// Before the name of a run whose answers are judged again.
const RECORDED: &str = "recorded:";

/// The subject that `model` names, where it is no model of this machine.
///
/// - `runs`  folder of the runs
pub(crate) fn subject(model: &str, choice: &EndpointChoice, runs: &Path, quiet: bool) -> Result<Option<Box<dyn Subject>>, Failure> {
    if let Some(run) = model.strip_prefix(RECORDED) {
        let reader = RunReader::open(&crate::commands::test::find_run(runs, run)?).map_err(Failure::usage)?;
        return Ok(Some(Box::new(RecordedSubject::open(&reader).map_err(Failure::usage)?)));
    }
    if !Address::is_address(model) {
        return Ok(None);
    }
    let subject = RemoteSubject::connect(client(model, choice)?, api(choice), choice.concurrency).map_err(|error| failure(model, error))?;
    if !quiet {
        let facts: Vec<String> = subject.probed().facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        terminal::remark(&facts.join("\n"));
    }
    Ok(Some(Box::new(subject)))
}

fn api(choice: &EndpointChoice) -> Api {
    match choice.api {
        ApiChoice::Chat => Api::Chat,
        ApiChoice::Completions => Api::Completions,
    }
}

fn client(model: &str, choice: &EndpointChoice) -> Result<Client, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let address = Address::parse(model, variable("OPENAI_BASE_URL").as_deref()).map_err(Failure::usage)?;
    let name = choice.api_key_env.as_str();
    let held = if name.is_empty() { None } else { variable(name) };
    if held.is_none() && !name.is_empty() && name != "OPENAI_API_KEY" {
        return Err(Failure::usage(anyhow::anyhow!("the variable `{name}` holds no key")).hint("set it, or leave --api-key-env out"));
    }
    let key = held.map(|text| Secret::new(&text, name)).transpose().map_err(Failure::usage)?.flatten();
    if key.is_some() && !choice.allow_plain_http {
        address.check_may_carry_key().map_err(Failure::usage)?;
    }
    let mut settings = Settings {
        requests_a_minute: choice.requests_per_minute,
        tokens_a_minute: choice.tokens_per_minute,
        budget: Budget {
            requests: choice.budget_requests,
            tokens: choice.budget_tokens,
            money: choice
                .budget_money
                .zip(choice.price)
                .map(|(most, (prompt, answer))| (most, Prices { prompt_per_million: prompt, answer_per_million: answer })),
        },
        ..Settings::default()
    };
    settings.deadlines.first_token = Duration::from_secs_f64(choice.first_token_timeout);
    settings.deadlines.between_tokens = Duration::from_secs_f64(choice.token_timeout);
    settings.deadlines.whole = Duration::from_secs_f64(choice.answer_timeout);
    settings.patience.attempts = choice.attempts;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(|| signals::interrupted().load(Ordering::SeqCst)));
    Ok(Client::new(address, key, settings, clock))
}

/// An endpoint that cannot be probed is asked nothing.
fn failure(model: &str, error: SubjectError) -> Failure {
    let hint = match error.class {
        FailureClass::Connection | FailureClass::Timeout => "is the server running, and is the address right, `/v1` included?",
        FailureClass::RateLimited => "try again later, or with --requests-per-minute",
        _ => "`-m https://host/v1#model` names the endpoint and its model; `--api completions` asks base models",
    };
    Failure::usage(anyhow::Error::new(error).context(format!("cannot ask `{model}`"))).hint(hint)
}
