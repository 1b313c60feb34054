//! A server that plays a list of raw responses, one a connection.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What it does when it is asked.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// Sends these bytes, then closes.
    Bytes(Vec<u8>),
    /// Sends each piece on its own, with this pause before each but the first.
    Slowly(Vec<Vec<u8>>, Duration),
    /// Sends these bytes, then breaks the connection: it closes with a part of the request unread.
    Reset(Vec<u8>),
    /// Sends these bytes and then nothing, until the client leaves.
    Hang(Vec<u8>),
}

/// A running server.
pub(crate) struct Server {
    /// Its base address.
    pub(crate) base: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Plays these, in order; after the last it closes every connection at once.
    pub(crate) fn playing(plays: Vec<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let held = Arc::clone(&requests);
        std::thread::spawn(move || {
            for play in plays {
                let Ok((stream, _)) = listener.accept() else { return };
                perform(stream, play, &held);
            }
        });
        Self { base, requests }
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

fn perform(mut stream: TcpStream, play: Play, requests: &Mutex<Vec<String>>) {
    let request = read_request(&mut stream, matches!(play, Play::Reset(_)));
    // Noted before it is answered, so that a client that has its answer finds its request here.
    requests.lock().expect("not poisoned").push(request);
    // A client that has left makes a write fail; that is its right.
    match play {
        Play::Bytes(bytes) | Play::Reset(bytes) => {
            let _ = stream.write_all(&bytes);
        }
        Play::Slowly(pieces, pause) => {
            for (index, piece) in pieces.iter().enumerate() {
                if index > 0 {
                    std::thread::sleep(pause);
                }
                if stream.write_all(piece).is_err() {
                    break;
                }
            }
        }
        Play::Hang(bytes) => {
            let _ = stream.write_all(&bytes);
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
    }
}

/// Reads the head, and the body unless only the head is wanted.
fn read_request(stream: &mut TcpStream, head_only: bool) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    if let Some(length) = length.filter(|_| !head_only) {
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_ok() {
            bytes.extend(body);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A whole response with its length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Play {
    let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    Play::Bytes(text.into_bytes())
}

/// A good response in JSON.
pub(crate) fn json(body: &str) -> Play {
    response("200 OK", "Content-Type: application/json\r\n", body)
}

/// The head of a stream that ends with its connection.
pub(crate) const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// A stream of these events, each with its empty line.
pub(crate) fn stream(events: &[&str]) -> Play {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Play::Bytes(format!("{STREAM}{body}").into_bytes())
}
