//! `test` on models behind an address.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::desk::{Desk, told};

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/evidence.yaml");

#[test]
fn an_address_where_nobody_listens_is_named_with_what_to_do() {
    let desk = Desk::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let model = format!("http://{free}/v1#m");
    desk.refuses(&["test", SUITE, "-m", &model], 2, &[&model, "refused", "hint:", "is the server running"]);
    assert_eq!(desk.names(), Vec::<String>::new(), "nothing was asked, so there is no run");
}

#[test]
fn a_key_is_not_sent_in_the_clear_to_another_machine_and_never_shown() {
    let desk = Desk::new();
    let mut command = desk.command(&["test", SUITE, "-m", "http://192.0.2.1/v1#m"]); // an address kept for examples (RFC 5737)
    command.env("OPENAI_API_KEY", "sk-this-is-the-secret");
    let told = told(command);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("https") && !told.err.contains("secret") && !told.out.contains("secret"), "{told:?}");
}

#[test]
fn what_an_endpoint_answers_is_judged_as_of_any_subject() {
    let desk = Desk::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let model = format!("http://{}/v1#m", listener.local_addr().expect("bound"));
    // Every question is answered alike, one connection each, until the test ends.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = answer(&mut stream);
            });
        }
    });
    let run = desk.run(&["test", SUITE, "-m", &model, "--quiet"]);
    assert_eq!(run.code, 0, "{run:?}");
    let runs: Vec<_> = std::fs::read_dir(desk.path("runs")).expect("a run was written").flatten().map(|entry| entry.path()).collect();
    let [folder] = runs.as_slice() else { panic!("one run: {runs:?}") };
    let trials = std::fs::read_to_string(folder.join("trials.jsonl")).expect("the record");
    let answers = trials.lines().filter(|line| line.contains("\"I do not know.\"")).count();
    assert_eq!(answers, 1120, "every trial of the suite was asked once and answered");
    // The answers of that run stand for the subject.
    let again = desk.run(&["test", SUITE, "-m", &format!("recorded:{}", folder.display()), "--quiet"]);
    assert_eq!(again.code, run.code, "{again:?}");
    let verdicts = |told: &crate::desk::Told| {
        let report = desk.text(told.out.trim().strip_suffix("html").map(|path| format!("{path}json")).expect("a page").as_str());
        serde_json::from_str::<serde_json::Value>(&report).expect("JSON")["verdicts"]["tests"].clone()
    };
    assert!(verdicts(&run).is_array());
    assert_eq!(verdicts(&again), verdicts(&run));
}

/// Reads one request and answers it.
fn answer(stream: &mut std::net::TcpStream) -> std::io::Result<()> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            bytes => read.extend_from_slice(&buffer[..bytes]),
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()).unwrap_or(0);
    while read.len() < end + length {
        let bytes = stream.read(&mut buffer)?;
        read.extend_from_slice(&buffer[..bytes]);
    }
    let (status, body) = if head.starts_with("post /v1/chat/completions") {
        (
            "200 OK",
            r#"{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"I do not know."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5}}"#,
        )
    } else {
        ("404 Not Found", "{}")
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
