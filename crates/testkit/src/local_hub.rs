//! A Hugging Face hub on this machine: enough of it for a client to list and fetch, with every misbehaviour that a network has.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde_json::json;

/// The hub, and the store on another port (another origin, as in the field) to which large files are redirected. It serves until the
/// process ends.
#[derive(Clone)]
pub struct LocalHub {
    hub: SocketAddr,
    store: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    commit: String,
    files: BTreeMap<String, (Vec<u8>, bool)>,
    names: Vec<String>,
    asked: Vec<Asked>,
    twists: Vec<(String, Twist)>,
}

/// One request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether the store was asked, not the hub.
    pub store: bool,
    /// `GET`, `HEAD` or `CONNECT`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Asked {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// How one answer differs from the right one.
#[derive(Clone, Debug, Default)]
pub struct Twist {
    /// Another status, with an empty body if `body` has none.
    pub status: Option<u16>,
    /// Headers beside the usual ones or in their place.
    pub headers: Vec<(&'static str, String)>,
    /// Another body.
    pub body: Option<Vec<u8>>,
    /// The whole file with status 200, whatever range was asked for.
    pub ignores_range: bool,
    /// The connection ends after so many bytes of the body.
    pub cut_after: Option<usize>,
    /// Nothing comes for so long after so many bytes of the body.
    pub stall: Option<(usize, Duration)>,
    /// Another `Content-Length`.
    pub claims_bytes: Option<u64>,
}

impl Twist {
    /// An answer with this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl LocalHub {
    /// A hub with one empty repository, whatever its name; every branch leads to the same commit.
    #[must_use]
    pub fn start() -> Self {
        let listen = || TcpListener::bind(("127.0.0.1", 0)).expect("a free port on this machine");
        let (hub, store) = (listen(), listen());
        let address = |listener: &TcpListener| listener.local_addr().expect("just bound");
        let commit = "0123456789abcdef0123456789abcdef01234567".to_owned();
        let this = Self { hub: address(&hub), store: address(&store), state: Arc::new(Mutex::new(State { commit, ..State::default() })) };
        for (listener, is_store) in [(hub, false), (store, true)] {
            let this = this.clone();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let this = this.clone();
                    // A client that goes away ends the conversation, and nothing else.
                    thread::spawn(move || this.converse(&stream, is_store).is_ok());
                }
            });
        }
        this
    }

    /// What `HF_ENDPOINT` must say.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.hub)
    }

    /// The address of the store.
    #[must_use]
    pub fn store(&self) -> String {
        format!("http://{}", self.store)
    }

    /// Puts a small file into the repository: kept in git, named by git's hash.
    pub fn put(&self, file: &str, content: impl Into<Vec<u8>>) {
        self.state().files.insert(file.to_owned(), (content.into(), false));
    }

    /// Puts a large file into the repository: kept in the store, named by its SHA-256.
    pub fn put_large(&self, file: &str, content: impl Into<Vec<u8>>) {
        self.state().files.insert(file.to_owned(), (content.into(), true));
    }

    /// Takes a file out of the repository.
    pub fn remove(&self, file: &str) {
        self.state().files.remove(file);
    }

    /// Lists a name for which there need be no file.
    pub fn list_also(&self, name: &str) {
        self.state().names.push(name.to_owned());
    }

    /// The branch moves to another commit.
    pub fn move_to(&self, commit: &str) {
        commit.clone_into(&mut self.state().commit);
    }

    /// Changes the next answer to a request whose `METHOD path` contains `part`. Several wait in line.
    pub fn twist(&self, part: &str, twist: Twist) {
        self.state().twists.push((part.to_owned(), twist));
    }

    /// All that was asked until now.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// The entity tag of a file: the name of its blob.
    #[must_use]
    pub fn tag(&self, file: &str) -> String {
        let state = self.state();
        let (content, large) = state.files.get(file).expect("a file that was put");
        tag(content, *large)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn converse(&self, stream: &TcpStream, store: bool) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let mut words = line.split_whitespace().map(str::to_owned);
            let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let mut headers = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let Some((name, value)) = line.trim_end().split_once(':') else { break };
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            let asked = Asked { store, method, path, headers };
            let twist = {
                let mut state = self.state();
                let line = format!("{} {}", asked.method, asked.path);
                state.asked.push(asked.clone());
                let at = state.twists.iter().position(|(part, _)| line.contains(part.as_str()));
                at.map(|at| state.twists.remove(at).1)
            };
            if asked.method == "CONNECT" {
                (&*stream).write_all(b"HTTP/1.1 200 OK\r\n\r\n")?; // as a proxy that leads to this same hub
                continue;
            }
            if !self.answer(stream, &asked, twist.unwrap_or_default())? {
                return stream.shutdown(std::net::Shutdown::Both);
            }
        }
    }

    /// Answers; says whether the connection stays open.
    fn answer(&self, mut stream: &TcpStream, asked: &Asked, twist: Twist) -> io::Result<bool> {
        let (mut status, mut headers, mut body) = self.right_answer(asked, twist.ignores_range);
        if let Some(other) = twist.status {
            status = other;
            body = Vec::new();
        }
        body = twist.body.unwrap_or(body);
        for (name, value) in twist.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name, value));
        }
        let length = twist.claims_bytes.unwrap_or(body.len() as u64);
        let mut head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        if asked.method == "HEAD" {
            return Ok(true);
        }
        let end = twist.cut_after.unwrap_or(body.len()).min(body.len());
        if let Some((after, time)) = twist.stall {
            stream.write_all(&body[..after.min(end)])?;
            thread::sleep(time);
            return Ok(false);
        }
        stream.write_all(&body[..end])?;
        Ok(end == body.len() && length == end as u64)
    }

    fn right_answer(&self, asked: &Asked, ignores_range: bool) -> (u16, Vec<(&'static str, String)>, Vec<u8>) {
        let state = self.state();
        let path = unescaped(asked.path.split('?').next().unwrap_or_default());
        if path.starts_with("/api/models/") {
            let names = state.files.keys().chain(&state.names).map(|name| json!({ "rfilename": name })).collect::<Vec<_>>();
            let listing = json!({ "id": "org/name", "sha": state.commit, "siblings": names, "gated": false });
            return (200, vec![("Content-Type", "application/json".to_owned())], listing.to_string().into_bytes());
        }
        let file = if asked.store {
            path.trim_start_matches('/')
        } else {
            path.split(&format!("/resolve/{}/", state.commit)).nth(1).unwrap_or_default()
        };
        let Some((content, large)) = state.files.get(file) else {
            return (404, vec![("X-Error-Code", "EntryNotFound".to_owned())], b"Entry not found".to_vec());
        };
        let tag = tag(content, *large);
        let mut headers = Vec::new();
        if !asked.store {
            headers.push(("X-Repo-Commit", state.commit.clone()));
            if *large {
                headers.push(("X-Linked-Etag", format!("\"{tag}\"")));
                headers.push(("X-Linked-Size", content.len().to_string()));
                headers.push(("ETag", "\"of-the-redirect\"".to_owned()));
                headers.push(("Location", format!("http://{}{}", self.store, escaped(&format!("/{file}")))));
                return (302, headers, b"Found".to_vec());
            }
        }
        headers.push(("ETag", if asked.store { "\"of-the-store\"".to_owned() } else { format!("\"{tag}\"") }));
        let from = asked.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
        match from.filter(|_| !ignores_range) {
            Some(from) if from >= content.len() => {
                headers.push(("Content-Range", format!("bytes */{}", content.len())));
                (416, headers, Vec::new())
            }
            Some(from) => {
                headers.push(("Content-Range", format!("bytes {from}-{}/{}", content.len() - 1, content.len())));
                (206, headers, content[from..].to_vec())
            }
            None => {
                // The client's HEAD needs the length that GET would have.
                (200, headers, content.clone())
            }
        }
    }
}

fn tag(content: &[u8], large: bool) -> String {
    let mut context = Context::new(if large { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY });
    if !large {
        context.update(format!("blob {}\0", content.len()).as_bytes());
    }
    context.update(content);
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn escaped(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._".contains(byte);
    path.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn unescaped(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
