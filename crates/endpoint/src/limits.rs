//! Pace, circuit breaker and budget: whether a request may be sent now.

use std::time::Duration;

use crate::settings::{Patience, Prices, Settings};

/// Shared by all requests of a client.
#[derive(Debug)]
pub(crate) struct Limits {
    settings: Settings,
    requests: Option<Pace>,
    tokens: Option<Pace>,
    breaker: Breaker,
    /// The endpoint asked for quiet until then.
    quiet_until: Duration,
    spent: Spent,
}

/// Whether a request may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admit {
    /// Yes, and it is counted.
    Go,
    /// Not before this has passed, to keep the pace.
    Pace(Duration),
    /// Not before this has passed, because the endpoint is down or asked for quiet.
    Quiet(Duration),
    /// Never: a limit of the budget is reached.
    Spent(String),
}

/// What has been spent so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Spent {
    requests: u64,
    prompt_tokens: u64,
    answer_tokens: u64,
}

impl Limits {
    pub(crate) fn new(settings: Settings) -> Self {
        let pace = |per_minute: Option<f64>| per_minute.filter(|per_minute| *per_minute > 0.0).map(Pace::new);
        Self {
            requests: pace(settings.requests_a_minute),
            tokens: pace(settings.tokens_a_minute),
            breaker: Breaker::Closed { failures: 0 },
            quiet_until: Duration::ZERO,
            spent: Spent::default(),
            settings,
        }
    }

    pub(crate) fn admit(&mut self, now: Duration) -> Admit {
        if let Some(limit) = self.spent.reached(&self.settings) {
            return Admit::Spent(limit);
        }
        let quiet = self.quiet_until.saturating_sub(now).max(self.breaker.open_for(now));
        if !quiet.is_zero() {
            return Admit::Quiet(quiet);
        }
        let paces = [&self.requests, &self.tokens];
        let wait = paces.into_iter().flatten().map(|pace| pace.next.saturating_sub(now)).max().unwrap_or_default();
        if !wait.is_zero() {
            return Admit::Pace(wait);
        }
        if let Some(pace) = &mut self.requests {
            pace.take(now, 1);
        }
        self.breaker.begin();
        self.spent.requests += 1;
        Admit::Go
    }

    /// A request met an endpoint that works, or none.
    pub(crate) fn met(&mut self, works: bool, now: Duration) {
        self.breaker.met(works, now, &self.settings.patience);
    }

    /// The endpoint asks for quiet.
    pub(crate) fn quiet(&mut self, until: Duration) {
        self.quiet_until = self.quiet_until.max(until);
    }

    /// An answer took so many tokens.
    pub(crate) fn used(&mut self, prompt_tokens: u64, answer_tokens: u64, now: Duration) {
        self.spent.prompt_tokens = self.spent.prompt_tokens.saturating_add(prompt_tokens);
        self.spent.answer_tokens = self.spent.answer_tokens.saturating_add(answer_tokens);
        if let Some(pace) = &mut self.tokens {
            pace.take(now, prompt_tokens.saturating_add(answer_tokens));
        }
    }
}

impl Spent {
    fn reached(&self, settings: &Settings) -> Option<String> {
        let tokens = self.prompt_tokens.saturating_add(self.answer_tokens);
        let budget = &settings.budget;
        if let Some(most) = budget.requests.filter(|most| self.requests >= *most) {
            return Some(format!("the budget of {most} requests is spent"));
        }
        if let Some(most) = budget.tokens.filter(|most| tokens >= *most) {
            return Some(format!("the budget of {most} tokens is spent: {tokens} were used"));
        }
        let (most, Prices { prompt_per_million, answer_per_million }) = budget.money?;
        let cost = (self.prompt_tokens as f64 * prompt_per_million + self.answer_tokens as f64 * answer_per_million) / 1e6;
        (cost >= most).then(|| format!("the budget of {most} in money is spent: {cost:.6} was used"))
    }
}

/// So many units a minute, evenly: after `n` of them the next may come `n` shares of a minute later.
#[derive(Debug)]
struct Pace {
    per_minute: f64,
    next: Duration,
}

impl Pace {
    fn new(per_minute: f64) -> Self {
        Self { per_minute, next: Duration::ZERO }
    }

    fn take(&mut self, now: Duration, units: u64) {
        let length = Duration::try_from_secs_f64(units as f64 * 60.0 / self.per_minute).unwrap_or(Duration::MAX);
        self.next = self.next.max(now).saturating_add(length);
    }
}

/// Keeps requests from an endpoint that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaker {
    /// Requests go; so many in a row met no working endpoint.
    Closed { failures: u32 },
    /// None goes before then.
    Open { until: Duration },
    /// One has gone to see; the others wait for what comes of it.
    HalfOpen,
}

/// How often the others look whether the one that went first has been answered.
const LOOK: Duration = Duration::from_millis(200);

impl Breaker {
    /// How long no request may go.
    fn open_for(&self, now: Duration) -> Duration {
        match self {
            Self::Closed { .. } => Duration::ZERO,
            Self::Open { until } => until.saturating_sub(now),
            Self::HalfOpen => LOOK,
        }
    }

    fn begin(&mut self) {
        if let Self::Open { .. } = self {
            *self = Self::HalfOpen;
        }
    }

    fn met(&mut self, works: bool, now: Duration, patience: &Patience) {
        let open = Self::Open { until: now + patience.open_for };
        *self = match *self {
            _ if works => Self::Closed { failures: 0 },
            Self::Closed { failures } if failures + 1 >= patience.failures_to_open => open,
            Self::Closed { failures } => Self::Closed { failures: failures + 1 },
            Self::HalfOpen => open,
            // Requests that were on their way when it opened tell nothing new.
            still @ Self::Open { .. } => still,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Budget;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_circuit_opens_half_opens_and_closes() {
        let mut limits = Limits::new(Settings::default());
        let Patience { failures_to_open, open_for, .. } = Settings::default().patience;
        for failure in 1..=failures_to_open {
            assert_eq!(limits.admit(at(0.0)), Admit::Go, "{failure}");
            limits.met(false, at(1.0));
        }
        assert_eq!(limits.admit(at(1.0)), Admit::Quiet(open_for), "open");
        assert_eq!(limits.admit(at(11.0)), Admit::Quiet(open_for - at(10.0)));
        assert_eq!(limits.admit(at(31.0)), Admit::Go, "half open: one goes first");
        assert_eq!(limits.admit(at(31.0)), Admit::Quiet(LOOK), "and the others wait");
        limits.met(false, at(32.0));
        assert_eq!(limits.admit(at(32.0)), Admit::Quiet(open_for), "open again");
        assert_eq!(limits.admit(at(62.0)), Admit::Go);
        limits.met(true, at(63.0));
        assert_eq!((limits.admit(at(63.0)), limits.admit(at(63.0))), (Admit::Go, Admit::Go), "closed");
        // What fails now and then does not open it.
        for _ in 0..100 {
            limits.met(false, at(64.0));
            limits.met(true, at(64.0));
        }
        assert_eq!(limits.admit(at(64.0)), Admit::Go);
    }

    #[test]
    fn the_pace_is_even_for_requests_and_tokens() {
        let settings = Settings { requests_a_minute: Some(30.0), tokens_a_minute: Some(600.0), ..Settings::default() };
        let mut limits = Limits::new(settings);
        assert_eq!(limits.admit(at(0.0)), Admit::Go);
        assert_eq!(limits.admit(at(0.5)), Admit::Pace(at(1.5)), "30 a minute is one in two seconds");
        assert_eq!(limits.admit(at(2.0)), Admit::Go);
        limits.used(70, 30, at(3.0));
        assert_eq!(limits.admit(at(4.0)), Admit::Pace(at(9.0)), "100 of 600 tokens are ten seconds, from 3 on");
        assert_eq!(limits.admit(at(13.0)), Admit::Go);
        limits.quiet(at(100.0));
        limits.quiet(at(50.0));
        assert_eq!(limits.admit(at(90.0)), Admit::Quiet(at(10.0)));
    }

    #[test]
    fn a_budget_ends_where_its_first_limit_is_reached() {
        let with = |budget: Budget| Limits::new(Settings { budget, ..Settings::default() });
        let mut limits = with(Budget { requests: Some(2), ..Budget::default() });
        assert_eq!([limits.admit(at(0.0)), limits.admit(at(0.0))], [Admit::Go, Admit::Go]);
        assert_eq!(limits.admit(at(0.0)), Admit::Spent("the budget of 2 requests is spent".to_owned()));

        let mut limits = with(Budget { tokens: Some(100), ..Budget::default() });
        limits.used(60, 39, at(0.0));
        assert_eq!(limits.admit(at(0.0)), Admit::Go);
        limits.used(0, 1, at(0.0));
        assert_eq!(limits.admit(at(0.0)), Admit::Spent("the budget of 100 tokens is spent: 100 were used".to_owned()));

        let prices = Prices { prompt_per_million: 2.0, answer_per_million: 10.0 };
        let mut limits = with(Budget { money: Some((0.5, prices)), ..Budget::default() });
        limits.used(100_000, 29_000, at(0.0));
        assert_eq!(limits.admit(at(0.0)), Admit::Go, "0.2 + 0.29");
        limits.used(0, 1_000, at(0.0));
        assert_eq!(limits.admit(at(0.0)), Admit::Spent("the budget of 0.5 in money is spent: 0.500000 was used".to_owned()));
    }
}
