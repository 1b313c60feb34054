use std::time::Duration;

/// How an endpoint is treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long to wait for an answer.
    pub deadlines: Deadlines,
    /// How often to try again, and how long to wait before.
    pub patience: Patience,
    /// Most requests a minute, failed ones included.
    pub requests_a_minute: Option<f64>,
    /// Most tokens a minute, of prompts and answers.
    pub tokens_a_minute: Option<f64>,
    /// Where to stop.
    pub budget: Budget,
    /// An answer larger than this is a failure.
    pub largest_answer_bytes: usize,
}

/// Each is a failure of the class `timeout`, and none is tried again: a slow endpoint is a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// To find the host and connect to it.
    pub connect: Duration,
    /// From the request to the first token of a stream.
    pub first_token: Duration,
    /// From one token of a stream to the next. Comments and empty events, which some servers send to keep a connection, count for nothing.
    pub between_tokens: Duration,
    /// From the request to the end of the answer.
    pub whole: Duration,
}

/// How to meet failures that another request may mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Most requests for one answer.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each further one.
    pub first_wait: Duration,
    /// The longest wait between two requests. An endpoint that asks for more is taken at its word and asked no more.
    pub longest_wait: Duration,
    /// So many requests in a row that met no working endpoint open the circuit: nothing is sent for a while.
    pub failures_to_open: u32,
    /// That while; after it one request goes first, and the others follow if it is answered.
    pub open_for: Duration,
}

/// Where to stop. What is already on its way when a limit is reached is still waited for, so tokens and money may be exceeded by that.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Most requests, failed ones included.
    pub requests: Option<u64>,
    /// Most tokens, of prompts and answers.
    pub tokens: Option<u64>,
    /// Most money, with the prices that it is counted by.
    pub money: Option<(f64, Prices)>,
}

/// What tokens cost, in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// For a million tokens of prompts.
    pub prompt_per_million: f64,
    /// For a million tokens of answers.
    pub answer_per_million: f64,
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            // A long prompt on a small machine takes minutes to its first token; a token does not.
            deadlines: Deadlines { connect: seconds(10), first_token: seconds(300), between_tokens: seconds(60), whole: seconds(600) },
            // Five attempts span a quarter of a minute; the open circuit spans a restart.
            patience: Patience {
                attempts: 5,
                first_wait: seconds(1),
                longest_wait: seconds(120),
                failures_to_open: 8,
                open_for: seconds(30),
            },
            requests_a_minute: None,
            tokens_a_minute: None,
            budget: Budget::default(),
            largest_answer_bytes: 16 << 20,
        }
    }
}
