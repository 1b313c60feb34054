//! How a model behind an address is asked.

use std::num::NonZeroUsize;

use super::{at_least_one, whole};

/// How an endpoint is asked; without effect on a model of this machine.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct EndpointChoice {
    /// Ask as a chat, or let a base model continue a text
    #[arg(long, value_name = "API", default_value = "chat")]
    pub(crate) api: ApiChoice,
    /// Environment variable that holds the key; an empty name sends none
    #[arg(long, value_name = "NAME", default_value = "OPENAI_API_KEY")]
    pub(crate) api_key_env: String,
    /// Send the key without encryption to another machine
    #[arg(long)]
    pub(crate) allow_plain_http: bool,
    /// Most requests at once
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub(crate) concurrency: NonZeroUsize,
    /// Most requests a minute
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) requests_per_minute: Option<f64>,
    /// Most tokens a minute, of prompts and answers
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) tokens_per_minute: Option<f64>,
    /// Most requests for one answer, where a failure may get better
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u32>)]
    pub(crate) attempts: u32,
    /// Seconds to the first token
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = positive)]
    pub(crate) first_token_timeout: f64,
    /// Seconds from one token to the next
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = positive)]
    pub(crate) token_timeout: f64,
    /// Seconds for the whole answer
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = positive)]
    pub(crate) answer_timeout: f64,
    /// Stop after so many requests; the run can be resumed
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) budget_requests: Option<u64>,
    /// Stop after so many tokens; the run can be resumed
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) budget_tokens: Option<u64>,
    /// Stop after so much money; the run can be resumed
    #[arg(long, value_name = "AMOUNT", requires = "price", value_parser = positive)]
    pub(crate) budget_money: Option<f64>,
    /// Prices of a million tokens, of prompts and of answers, as in 0.5,1.5
    #[arg(long, value_name = "PROMPT,ANSWER", value_parser = prices)]
    pub(crate) price: Option<(f64, f64)>,
}

/// The two interfaces by name.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiChoice {
    Chat,
    Completions,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    // Longer than a century is a slip of the hand, and more than a duration holds soon after.
    number.filter(|number| *number < 3e9).ok_or_else(|| "wanted a number above 0".to_owned())
}

fn prices(text: &str) -> Result<(f64, f64), String> {
    let price = |text: &str| text.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    let both = text.split_once(',').and_then(|(prompt, answer)| Some((price(prompt)?, price(answer)?)));
    both.ok_or_else(|| "wanted two prices, as in 0.5,1.5".to_owned())
}
