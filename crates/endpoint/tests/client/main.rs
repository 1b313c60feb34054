//! The client against a server that misbehaves in every way that servers do.

mod answers;
mod failures;
mod probing;
mod server;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use glassbox_endpoint::{Address, Ask, Client, Clock, Deadlines, Failed, Features, Patience, Prompt, Reply, Secret, Settings};

use server::{Play, Server};

/// Never shown, wherever it comes from.
const KEY: &str = "sk-test-0123456789abcdef";

/// A clock that goes on only when somebody waits.
#[derive(Default)]
struct StillClock {
    now: Mutex<Duration>,
    waits: Mutex<Vec<Duration>>,
}

impl Clock for StillClock {
    fn now(&self) -> Duration {
        *self.now.lock().expect("not poisoned")
    }

    fn time_of_day(&self) -> SystemTime {
        // 1994-11-06 08:49:37 UTC, the example of RFC 9110.
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn wait(&self, length: Duration) {
        *self.now.lock().expect("not poisoned") += length;
        self.waits.lock().expect("not poisoned").push(length);
    }

    fn interrupted(&self) -> bool {
        false
    }
}

/// A client of a server, with what it waited.
struct Desk {
    server: Server,
    client: Client,
    clock: Arc<StillClock>,
}

fn settings() -> Settings {
    let seconds = Duration::from_secs;
    Settings {
        deadlines: Deadlines { connect: seconds(20), first_token: seconds(20), between_tokens: seconds(20), whole: seconds(20) },
        patience: Patience { attempts: 4, first_wait: seconds(1), longest_wait: seconds(60), failures_to_open: 100, open_for: seconds(30) },
        largest_answer_bytes: 100_000,
        ..Settings::default()
    }
}

impl Desk {
    fn new(plays: Vec<Play>) -> Self {
        Self::with(plays, settings())
    }

    fn with(plays: Vec<Play>, settings: Settings) -> Self {
        let server = Server::playing(plays);
        let address = Address::parse(&format!("{}#m", server.base), None).expect("an address");
        let clock = Arc::new(StillClock::default());
        let key = Secret::new(KEY, "KEY").expect("usable");
        let client = Client::new(address, key, settings, Arc::clone(&clock) as Arc<dyn Clock>);
        Self { server, client, clock }
    }

    fn ask(&self) -> Result<Reply, Failed> {
        self.client.ask("m", &Features::all(), &chat())
    }

    fn waits(&self) -> Vec<Duration> {
        self.clock.waits.lock().expect("not poisoned").clone()
    }
}

fn chat() -> Ask {
    Ask {
        prompt: Prompt::Chat(vec![("user".to_owned(), "Hi".to_owned())]),
        max_tokens: 8,
        temperature: 0.0,
        top_p: None,
        stop: Vec::new(),
        seed: 1,
    }
}

/// A good answer in one piece.
const GOOD: &str = r#"{"model":"served","choices":[{"index":0,"message":{"role":"assistant","content":"teal"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#;
