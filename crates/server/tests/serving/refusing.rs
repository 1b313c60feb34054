use std::io::Write as _;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::house::{House, reply, settings};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

/// The next request is served, whatever the last one was.
fn still_serves(house: &House) {
    let reply = house.post(TEXT, &json!({"prompt": "Once", "max_tokens": 1, "temperature": 0}));
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// BL-64: bytes that are no request.
#[test]
fn broken_and_foreign_bytes_are_refused_without_being_repeated() {
    let house = House::open();
    let bodies: [(&str, &[u8]); 20] = [
        (TEXT, b"{\"prompt\":\"\xff\xfe\"}"),
        (TEXT, b"{\"prompt\":\"\\ud83d\"}"),
        (TEXT, b"{:"),
        (TEXT, b""),
        (TEXT, b"[]"),
        (TEXT, b"\xc4\xe3\xba\xc3"),
        (CHAT, b"{\"messages\":\"hi\"}"),
        (CHAT, b"{\"messages\":[]}"),
        (CHAT, b"{\"messages\":[\"hi\"]}"),
        (CHAT, b"{\"messages\":[{\"role\":\"user\",\"content\":null}]}"),
        (CHAT, b"{\"messages\":[{\"role\":\"user\",\"content\":7}]}"),
        (CHAT, b"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"x\"}]}]}"),
        (CHAT, b"{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}"),
        (CHAT, b"{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"SECRET\":1}]}"),
        (CHAT, b"{}"),
        (TEXT, b"{\"prompt\":{}}"),
        (TEXT, b"{\"prompt\":[1,\"x\"]}"),
        (TEXT, b"{\"prompt\":\"\"}"),
        (TEXT, b"{\"prompt\":\"x\",\"SECRET \\u0007\":1}"),
        (TEXT, b"{\"prompt\":\"x\",\"stop\":\"\"}"),
    ];
    for (path, body) in bodies {
        let reply = house.post_bytes(path, body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(reply.status, 400, "{shown}: {}", reply.body);
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
        assert!(!reply.body.contains("SECRET") && !reply.message().is_empty(), "{shown}: {}", reply.body);
    }
    let deep = format!("{{\"prompt\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(house.post_bytes(TEXT, deep.as_bytes()).status, 400);
    still_serves(&house);
}

#[test]
fn half_a_character_is_still_a_valid_answer() {
    let house = House::open();
    for seed in 0..12 {
        let body = json!({"prompt": "🙂", "max_tokens": 1, "temperature": 1000, "seed": seed, "logprobs": 1});
        let reply = house.post(TEXT, &body);
        assert_eq!((reply.status, reply.json()["choices"].as_array().map(Vec::len)), (200, Some(1)), "{}", reply.body);
    }
}

/// BL-74: one request that is sized to kill.
#[test]
fn a_request_beyond_a_limit_is_refused_with_the_limit_and_nothing_is_allocated_for_it() {
    let house = House::open();
    let hundred_thousand: Vec<String> = (0..100_000).map(|stop| format!("s{stop}")).collect();
    let mut ids = vec![1_u32; 3];
    ids.push(u32::MAX);
    let bodies: Vec<(Value, &str)> = vec![
        (json!({"logprobs": 1_000_000_000}), "0 to 20"),
        (json!({"n": 5_000_000}), "1 to 32"),
        (json!({"max_tokens": 2_147_483_647_i64}), "from 1 to"),
        (json!({"max_tokens": 999_999_999}), "at most 512 together"),
        (json!({"max_tokens": 1e18}), "from 1 to"),
        (json!({"max_tokens": -1}), "from 1 to"),
        (json!({"max_tokens": 0}), "from 1 to"),
        (json!({"max_tokens": "16"}), "found a string"),
        (json!({"best_of": 1_000_000}), "1 to 32"),
        (json!({"logit_bias": {"4000000000": 1}}), "not served"),
        (json!({"stop": hundred_thousand}), "at most 16"),
        (json!({"stop": "x".repeat(2000)}), "1024 bytes"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"temperature": 1e300}), "a number"),
        (json!({"top_p": 0}), "top-p"),
        (json!({"seed": 1.5}), "64 bits"),
        (json!({"prompt": ids}), "4294967295"),
        (json!({"prompt": vec!["x"; 33]}), "at most 32"),
        (json!({"prompt": ["x", "y"], "n": 20}), "more than 32"),
        (json!({"prompt": "a b c d ".repeat(400), "max_tokens": 1}), "at most 512 together"),
        (json!({"suffix": "end"}), "not served"),
        (json!({"promt": "x"}), "it reads"),
        (json!({"stream_options": {"include_usage": true}}), "stream"),
    ];
    for (extra, wanted) in bodies {
        let mut body = json!({"prompt": "one two three four five"});
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let reply = house.post(TEXT, &body);
        let shown: String = extra.to_string().chars().take(80).collect();
        assert_eq!(reply.status, 400, "{shown}: {}", reply.body);
        assert!(reply.message().contains(wanted), "{shown}: {}", reply.message());
        assert!(reply.body.len() < 1000, "{shown}");
    }
    let chat = |extra: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "x"}]});
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        house.post(CHAT, &body)
    };
    assert_eq!(chat(json!({"logprobs": true, "top_logprobs": 1_000_000_000})).status, 400);
    assert_eq!(chat(json!({"tools": [{"type": "function"}]})).status, 400);
    assert_eq!(chat(json!({"max_tokens": 3, "max_completion_tokens": 4})).status, 400);
    assert_eq!(chat(json!({"tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "max_tokens": 1})).status, 200);
    assert_eq!(chat(json!({"model": "another", "max_tokens": 1})).status, 404);
    still_serves(&house);
}

#[test]
fn a_body_that_never_comes_holds_nobody_up() {
    let house = House::open();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut longer = house.connect();
    longer.write_all(format!("{head}Content-Length: 1000\r\n\r\n{{\"prompt\":").as_bytes()).expect("it reads");
    let mut stalling = house.connect();
    stalling.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"pro").as_bytes()).expect("it reads");
    let mut headless = house.connect();
    headless.write_all(b"POST /v1/comp").expect("it reads");
    still_serves(&house);
    longer.shutdown(Shutdown::Both).expect("it was open");
    let since = Instant::now();
    let mut rest = String::new();
    let _ = std::io::Read::read_to_string(&mut headless, &mut rest);
    assert!(since.elapsed() < Duration::from_secs(30), "a head must come within ten seconds");
    still_serves(&house);
}

#[test]
fn framing_that_is_wrong_is_refused() {
    let house = House::open();
    let huge = format!("GET /health HTTP/1.1\r\nX-Long: {}\r\n\r\n", "x".repeat(1 << 20));
    let mut stream = house.connect();
    // The server may close before it has read all of it.
    let _ = stream.write_all(huge.as_bytes());
    let mut bytes = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.is_empty() || text.contains(" 431 "), "{text}");
    let bad_chunk =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    assert_eq!(reply(&house.raw(bad_chunk.as_bytes())).status, 400);
    let form = "POST /v1/completions HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(reply(&house.raw(form.as_bytes())).status, 415);
    let body = 17 << 20;
    let large = format!("POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {body}\r\n\r\n");
    let mut stream = house.connect();
    stream.write_all(large.as_bytes()).expect("it reads");
    let _ = stream.write_all(&vec![b' '; body]);
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut stream, &mut text);
    assert!(text.is_empty() || reply(&text).status == 413, "{text}");
    assert_eq!(house.get("/v2/nothing").status, 404);
    assert_eq!(house.get("/v1/completions").status, 405);
    still_serves(&house);
}

#[test]
fn strangers_are_held_off() {
    let house = House::with(glassbox_mechanisms::Kernels::Fast, glassbox_server::Settings { key: Some("k3y".to_owned()), ..settings() });
    let ask = |headers: &str| reply(&house.raw(format!("GET /v1/models HTTP/1.0\r\n{headers}\r\n").as_bytes()));
    for (headers, status) in [
        ("", 401),
        ("Authorization: Bearer k3\r\n", 401),
        ("Authorization: Bearer k3yy\r\n", 401),
        ("Authorization: Basic k3y\r\n", 401),
        ("Authorization: Bearer k3y\r\n", 200),
        ("Authorization: Bearer k3y\r\nHost: localhost:80\r\nOrigin: http://127.0.0.1:3000\r\n", 200),
        ("Authorization: Bearer k3y\r\nHost: [::1]:80\r\n", 200),
        ("Authorization: Bearer k3y\r\nHost: evil.example\r\n", 403),
        ("Authorization: Bearer k3y\r\nHost: localhost.evil.example\r\n", 403),
        ("Authorization: Bearer k3y\r\nOrigin: https://evil.example\r\n", 403),
        ("Authorization: Bearer k3y\r\nOrigin: null\r\n", 403),
    ] {
        let reply = ask(headers);
        assert_eq!(reply.status, status, "{headers}: {}", reply.body);
        assert!(!reply.body.contains("k3y"), "a key is never shown");
    }
    assert_eq!(house.get("/health").status, 200, "a probe of the health needs no key");
}
