//! A server of the built-in model in this process, and a client that sends bytes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::cache::KvType;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::Model;
use glassbox_server::{Offer, Settings, serve};
use glassbox_text::{ChatTemplate, Tokenizer};
use serde_json::Value;

/// A server that ends with its test.
pub(crate) struct House {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn checkpoint() -> Checkpoint {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specimens/specimen");
    Checkpoint::open(folder).expect("the model is committed")
}

pub(crate) fn model(kernels: Kernels) -> Model {
    Model::open(&checkpoint(), kernels).expect("the model is whole")
}

pub(crate) fn tokenizer() -> Tokenizer {
    Tokenizer::open(&checkpoint()).expect("it has a tokenizer")
}

/// Few seats and a short queue, so that both can be filled.
pub(crate) fn settings() -> Settings {
    Settings { address: SocketAddr::from(([127, 0, 0, 1], 0)), slots: 4, waiting: 64, cache_limit_bytes: 1 << 28, key: None }
}

impl House {
    /// Serves the built-in model, quickly.
    pub(crate) fn open() -> Self {
        Self::with(Kernels::Fast, settings())
    }

    /// The same, so slowly that there is time to leave: every kernel is the definition.
    pub(crate) fn slow(settings: Settings) -> Self {
        Self::with(Kernels::Textbook, settings)
    }

    pub(crate) fn with(kernels: Kernels, settings: Settings) -> Self {
        let offer = Offer {
            name: "specimen".to_owned(),
            model: model(kernels),
            tokenizer: tokenizer(),
            template: Some(ChatTemplate::open(&checkpoint(), None).expect("it has a template")),
            workers: Workers::new(2),
            fingerprint: "fp".to_owned(),
            kv_type: KvType::F32,
            context: 512,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let (sender, receiver) = channel();
        let serving = std::thread::spawn(move || {
            serve(offer, &settings, &flag, |address| sender.send(address).expect("the test waits")).expect("it serves");
        });
        let address = receiver.recv().expect("it begins to serve");
        Self { address, stop, serving: Some(serving) }
    }

    /// Sends bytes as they are, and reads until the server closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("it reads");
        read(&mut stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        stream
    }

    /// Posts a body of any bytes.
    pub(crate) fn post_bytes(&self, path: &str, body: &[u8]) -> Reply {
        let mut stream = self.connect();
        stream.write_all(&request(path, body)).expect("it reads");
        reply(&read(&mut stream))
    }

    /// Posts JSON to `/v1/chat/completions` or `/v1/completions`.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_bytes(path, body.to_string().as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        reply(&self.raw(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()))
    }

    /// Posts, and leaves after `patience` without reading.
    pub(crate) fn post_and_leave(&self, path: &str, body: &Value, patience: Duration) {
        let mut stream = self.connect();
        stream.write_all(&request(path, body.to_string().as_bytes())).expect("it reads");
        std::thread::sleep(patience);
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// Waits until the server has `active` choices in the making and none waiting; gives whether that came within `patience`.
    pub(crate) fn comes_to(&self, active: u64, patience: Duration) -> bool {
        let since = Instant::now();
        while since.elapsed() < patience {
            let health = self.get("/health").json();
            if health["active"] == active && health["waiting"] == 0 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The message of an error.
    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The data of the events of a stream.
    pub(crate) fn events(&self) -> Vec<String> {
        self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).map(str::to_owned).collect()
    }
}

/// HTTP/1.0: the body comes as it is, and the connection closes behind it.
fn request(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has said all that it will.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).expect("the server speaks UTF-8")
}

pub(crate) fn reply(text: &str) -> Reply {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no status: {head:?}"));
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}
