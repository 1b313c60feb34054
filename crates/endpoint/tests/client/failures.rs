//! Failures: each has its class, what may get better is asked again, and nothing shows the key.

use std::time::{Duration, Instant};

use glassbox_endpoint::{Budget, Deadlines, Failed, Features, Patience, Prices, Settings, wait_before};
use glassbox_record::{Digest, FailureClass};

use crate::server::{Play, STREAM, json, response, stream};
use crate::{Desk, GOOD, KEY, chat, settings};

fn failed(play: Play) -> Failed {
    let once = Patience { attempts: 1, ..settings().patience };
    Desk::with(vec![play], Settings { patience: once, ..settings() }).ask().expect_err("a failure")
}

#[test]
fn every_refusal_has_its_class() {
    let check = |status: &str, body: &str, class: FailureClass, message: &str| {
        let failed = failed(response(status, "", body));
        assert_eq!(failed.class, class, "{status}: {failed}");
        assert!(failed.message.contains(message), "{status}: {failed}");
    };
    let openai = |message: &str, code: &str| format!(r#"{{"error":{{"message":"{message}","type":"t","param":null,"code":"{code}"}}}}"#);
    check("400 Bad Request", &openai("bad seed", "x"), FailureClass::Rejected, "(status 400): bad seed");
    check("400 Bad Request", &openai("too long", "context_length_exceeded"), FailureClass::ContextTooLong, "too long");
    check("400 Bad Request", r#"{"error":"exceeds the context size"}"#, FailureClass::ContextTooLong, "exceeds");
    check("413 Payload Too Large", "", FailureClass::ContextTooLong, "(status 413)");
    check("401 Unauthorized", &openai("wrong", "x"), FailureClass::Rejected, "check the variable");
    check("403 Forbidden", "no", FailureClass::Rejected, "(status 403): no");
    check("404 Not Found", r#"{"detail":"Not Found"}"#, FailureClass::Rejected, "\"Not Found\"");
    check("422 Unprocessable", r#"{"detail":[{"loc":["body"]}]}"#, FailureClass::Rejected, r#"[{"loc":["body"]}]"#);
    check("429 Too Many Requests", "", FailureClass::RateLimited, "too many requests");
    check("429 Too Many Requests", &openai("pay", "insufficient_quota"), FailureClass::RateLimited, "the quota is used up: pay");
    check("500 Internal Server Error", "<html>oh</html>", FailureClass::Internal, "a page in HTML");
    check("502 Bad Gateway", "", FailureClass::Connection, "(status 502)");
    check("503 Service Unavailable", "", FailureClass::Connection, "(status 503)");
    check("504 Gateway Timeout", "", FailureClass::Timeout, "(status 504)");
    check("408 Request Timeout", "", FailureClass::Timeout, "(status 408)");
    check("200 OK", "<html>log in</html>", FailureClass::Internal, "wanted an answer in JSON, found `<html>log in</html>`");
    check("200 OK", "", FailureClass::Internal, "found nothing");
    check("200 OK", &openai("overloaded", "x"), FailureClass::Internal, "answered with an error: overloaded");
    check("200 OK", &GOOD[..GOOD.len() - 9], FailureClass::Connection, "in the middle of its JSON");
}

#[test]
fn a_redirect_is_refused_and_the_key_stays() {
    let other = Desk::new(vec![json(GOOD)]);
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let failed = failed(response(status, &format!("Location: {}/chat/completions?token=t0ken\r\n", other.server.base), ""));
        assert_eq!(failed.class, FailureClass::Rejected);
        assert!(failed.message.contains(&format!("redirects to `{}/chat/completions`", other.server.base)), "{failed}");
    }
    assert_eq!(other.server.requests(), Vec::<String>::new());
}

#[test]
fn broken_connections_are_connections_and_not_answers() {
    let check = |play: Play, message: &str| {
        let failed = failed(play);
        assert_eq!(failed.class, FailureClass::Connection, "{failed}");
        assert!(failed.message.contains(message), "{failed}");
    };
    check(Play::Bytes(Vec::new()), "");
    check(Play::Reset(Vec::new()), "");
    check(Play::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\"".to_vec()), "");
    check(Play::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\"".to_vec()), "broke off after 10 bytes");
    check(Play::Bytes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"cho".to_vec()), "broke off");
    check(Play::Bytes(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()), "");
    let half = format!("{STREAM}data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}}}}]}}\n\n");
    check(Play::Bytes(half.clone().into_bytes()), "the stream ended before the answer did");
    check(Play::Bytes(format!("{half}data: {{\"choi").into_bytes()), "in the middle of its JSON");
}

#[test]
fn an_error_in_mid_stream_ends_the_answer() {
    let begun = r#"{"choices":[{"delta":{"content":"x"}}]}"#;
    let failed_with = |events: &[&str]| failed(stream(events));
    let failure = failed_with(&[begun, r#"{"error":{"message":"out of memory","code":500}}"#]);
    assert_eq!((failure.class, failure.message.as_str()), (FailureClass::Internal, "the endpoint answered with an error: out of memory"));
    let named = Play::Bytes(format!("{STREAM}data: {begun}\n\nevent: error\ndata: {{\"message\":\"stopped\"}}\n\n").into_bytes());
    assert_eq!(failed(named).message, "the endpoint broke its answer off with an error: stopped");
}

/// Every field of an answer, replaced by values of every other type: an answer or a failure that names the field, never a panic.
#[test]
fn a_field_of_a_wrong_type_is_named() {
    let whole = r#"{"model":"m","system_fingerprint":"f","choices":[{"index":0,"message":{"content":"x","reasoning_content":"r"},"finish_reason":"stop","logprobs":{"content":[{"token":"x","logprob":-1.0,"top_logprobs":[{"token":"x","logprob":-1.0}]}]}}],"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    let document: serde_json::Value = serde_json::from_str(whole).expect("JSON");
    let places: Vec<String> = pointers(&document, String::new());
    let wrong = [serde_json::json!(-1.5), serde_json::json!("text"), serde_json::json!([]), serde_json::json!({}), serde_json::json!(true)];
    let mut refused = 0;
    let (mut plays, mut changes) = (Vec::new(), Vec::new());
    for place in &places {
        for value in &wrong {
            let mut changed = document.clone();
            *changed.pointer_mut(place).expect("it is there") = value.clone();
            plays.push(json(&changed.to_string()));
            changes.push((place, value));
        }
    }
    let desk = Desk::new(plays);
    for (place, value) in changes {
        let features = Features { stream: false, ..Features::all() };
        if let Err(failure) = desk.client.ask("m", &features, &chat()) {
            let name = place.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
            assert_eq!(failure.class, FailureClass::Internal, "{place} = {value}: {failure}");
            let inside = failure.message.contains("has no field `");
            assert!(failure.message.contains(name) || inside, "{place} = {value}: {failure}");
            refused += 1;
        }
    }
    // 23 places hold a value each; of five wrong ones three at least are of a wrong type.
    assert!(refused >= 3 * places.len(), "only {refused} of {} changes were refused", places.len() * wrong.len());
}

fn pointers(value: &serde_json::Value, here: String) -> Vec<String> {
    let inner: Vec<String> = match value {
        serde_json::Value::Object(map) => map.iter().flat_map(|(name, value)| pointers(value, format!("{here}/{name}"))).collect(),
        serde_json::Value::Array(list) => {
            list.iter().enumerate().flat_map(|(index, value)| pointers(value, format!("{here}/{index}"))).collect()
        }
        _ => Vec::new(),
    };
    // The place itself, and everything within.
    [here].into_iter().filter(|here| !here.is_empty()).chain(inner).collect()
}

#[test]
fn empty_choices_and_missing_fields_are_named() {
    for (body, message) in [
        (r#"{"choices":[]}"#, "the field `choices` of the answer is empty"),
        ("{}", "the answer has no field `choices`"),
        ("[]", "the answer is wrong: wanted an object, found a list"),
        ("7", "the answer is wrong: wanted an object, found a number"),
        (r#"{"choices":[7]}"#, "the field `choices[0]` of the answer is wrong: wanted an object, found a number"),
        (
            r#"{"choices":[{"message":{"content":["x"]}}]}"#,
            "the field `choices[0].message.content` of the answer is wrong: wanted a text, found a list",
        ),
    ] {
        assert_eq!(failed(json(body)).message, message, "{body}");
    }
}

#[test]
fn a_huge_answer_is_refused_before_it_is_held() {
    for play in [json(&format!("{{\"x\":\"{}\"}}", "y".repeat(200_000))), stream(&[&"y".repeat(200_000)])] {
        let failure = failed(play);
        assert_eq!(failure.message, "the answer is larger than 100000 bytes, the most that is read");
    }
}

#[test]
fn deadlines_hold_for_the_first_token_between_tokens_and_for_the_whole_whatever_drips() {
    let long = Duration::from_secs(20);
    let short = Duration::from_millis(80);
    let all = Deadlines { connect: long, first_token: long, between_tokens: long, whole: long };
    let token = format!("{STREAM}data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}}}}]}}\n\n");
    let pings = |first: &str| {
        let mut pieces = vec![first.as_bytes().to_vec()];
        pieces.extend((0..4_000).map(|_| b": ping\n\n".to_vec()));
        Play::Slowly(pieces, Duration::from_millis(5))
    };
    let check = |deadlines: Deadlines, play: Play| {
        let started = Instant::now();
        let failure = Desk::with(vec![play], Settings { deadlines, ..settings() }).ask().expect_err("too slow");
        assert_eq!((failure.class, failure.retries.len()), (FailureClass::Timeout, 0), "{failure}");
        // The server would go on for twenty seconds, and the other deadlines are as far away.
        assert!(started.elapsed() < long, "{failure}");
    };
    check(Deadlines { first_token: short, ..all }, Play::Hang(Vec::new()));
    check(Deadlines { first_token: short, ..all }, Play::Hang(STREAM.as_bytes().to_vec()));
    check(Deadlines { first_token: short, ..all }, pings(STREAM));
    check(Deadlines { between_tokens: short, ..all }, Play::Hang(token.clone().into_bytes()));
    check(Deadlines { between_tokens: short, ..all }, pings(&token));
    check(Deadlines { whole: short, ..all }, pings(&token));
    check(Deadlines { whole: short, ..all }, Play::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec()));
}

#[test]
fn a_failure_that_may_get_better_is_tried_again_by_the_computed_schedule() {
    let plays = vec![
        response("500 Oh", "", "no"),
        Play::Bytes(Vec::new()),
        response("503 Soon", "", ""),
        stream(&[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#]),
    ];
    let desk = Desk::new(plays);
    let reply = desk.ask().expect("the fourth is good");
    let request = reply.request.clone().expect("it was sent");
    let sent = desk.server.requests();
    let body = sent[0].split_once("\r\n\r\n").expect("a body").1;
    assert_eq!(request, Digest::of_bytes(body.as_bytes()));
    assert!(sent.iter().all(|request| request == &sent[0]), "the same was asked each time");
    let schedule: Vec<Duration> = (1..=3).map(|failures| wait_before(&settings().patience, &request, failures)).collect();
    assert_eq!(desk.waits(), schedule);
    let classes: Vec<FailureClass> = reply.retries.iter().map(|retry| retry.class).collect();
    assert_eq!(classes, [FailureClass::Internal, FailureClass::Connection, FailureClass::Connection]);
    assert_eq!(u128::from(reply.retries[1].waited_ms), schedule[1].as_millis());

    let desk = Desk::new(vec![response("500 Oh", "", ""); 9]);
    let failure = desk.ask().expect_err("never good");
    assert_eq!(
        (failure.class, failure.retries.len(), desk.server.requests().len()),
        (FailureClass::Internal, 3, 4),
        "four attempts in all"
    );
}

#[test]
fn what_a_server_asks_to_wait_is_waited_and_too_long_a_wait_is_not() {
    let seconds = Duration::from_secs;
    let check = |header: &str, wait: Duration| {
        let desk = Desk::new(vec![response("429 Slow", header, ""), json(GOOD)]);
        let reply = desk.ask().expect("the second is good");
        assert_eq!(desk.waits(), [wait], "{header}");
        assert_eq!(reply.retries[0].class, FailureClass::RateLimited);
    };
    check("Retry-After: 7\r\n", seconds(7));
    check("Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n", seconds(30));
    check("retry-after-ms: 1500\r\nRetry-After: 2\r\n", Duration::from_millis(1500));
    let desk = Desk::new(vec![response("429 Slow", "Retry-After: 3600\r\n", ""), json(GOOD)]);
    let failure = desk.ask().expect_err("an hour is too long");
    assert_eq!((failure.class, desk.waits().len(), desk.server.requests().len()), (FailureClass::RateLimited, 0, 1));
    assert!(failure.message.ends_with("it asks to wait 3600 s, longer than the 60 s that are waited"), "{failure}");
    for never in ["400 Bad", "401 No", "404 Not Found", "422 Bad"] {
        let desk = Desk::new(vec![response(never, "", ""), json(GOOD)]);
        assert!(desk.ask().is_err_and(|failure| failure.retries.is_empty()), "{never} gets no better");
    }
}

#[test]
fn text_that_was_told_is_not_told_again() {
    let half = stream(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#]);
    let desk = Desk::new(vec![half, json(GOOD)]);
    let mut heard = String::new();
    let failure = desk.client.ask_with("m", &Features::all(), &chat(), &mut |text| heard.push_str(text)).expect_err("broken");
    assert_eq!((heard.as_str(), failure.class, desk.server.requests().len()), ("x", FailureClass::Connection, 1));
}

#[test]
fn an_endpoint_that_is_down_is_left_alone_and_asked_again_later() {
    let patience = Patience { attempts: 3, failures_to_open: 4, open_for: Duration::from_secs(40), ..settings().patience };
    let mut plays = vec![response("502 Down", "", ""); 5];
    plays.push(json(GOOD));
    let desk = Desk::with(plays, Settings { patience, ..settings() });
    assert!(desk.ask().is_err_and(|failure| failure.retries.len() == 2));
    assert_eq!(desk.waits().len(), 2, "two waits between three attempts");
    // The fourth failure opens the circuit, the fifth, after 40 s, opens it again; the sixth request is answered and closes it.
    let reply = desk.ask().expect("up again");
    assert_eq!((reply.text.as_str(), reply.retries.len(), desk.server.requests().len()), ("teal", 2, 6));
    let waits = desk.waits();
    assert_eq!([waits[2] + waits[3], waits[4] + waits[5]], [Duration::from_secs(40); 2], "{waits:?}");

    let patience = Patience { failures_to_open: 1, open_for: Duration::from_secs(70), ..patience };
    let desk = Desk::with(vec![response("502 Down", "", ""); 2], Settings { patience, ..settings() });
    let failure = desk.ask().expect_err("down for longer than is waited");
    assert_eq!((failure.class, failure.retries.len(), desk.server.requests().len()), (FailureClass::Connection, 1, 1));
    assert!(failure.message.ends_with("nothing was sent"), "{failure}");
}

#[test]
fn a_budget_stops_before_anything_is_sent() {
    let with = |budget: Budget| Desk::with(vec![json(GOOD); 9], Settings { budget, ..settings() });
    let prices = Prices { prompt_per_million: 1e6, answer_per_million: 1e6 };
    for (budget, answers) in [
        (Budget { requests: Some(2), ..Budget::default() }, 2),
        // An answer takes 7 + 1 tokens: the second passes the limit.
        (Budget { tokens: Some(9), ..Budget::default() }, 2),
        (Budget { money: Some((20.0, prices)), ..Budget::default() }, 3),
    ] {
        let desk = with(budget);
        let good = (0..answers).filter(|_| desk.ask().is_ok()).count();
        let failure = desk.ask().expect_err("the budget is spent");
        assert_eq!((good, failure.class, desk.server.requests().len()), (answers, FailureClass::Budget, answers), "{failure}");
    }
}

#[test]
fn no_text_that_leaves_the_client_holds_the_key() {
    let echo = format!(
        r#"{{"model":"{KEY}","system_fingerprint":"{KEY}","choices":[{{"message":{{"content":"your key is {KEY}","reasoning_content":"{KEY}"}},"finish_reason":"{KEY}"}}]}}"#
    );
    let error = format!(r#"{{"error":{{"message":"wrong key {KEY}, I mean {}****{}"}}}}"#, &KEY[..12], &KEY[12..]);
    let desk = Desk::new(vec![
        json(&echo),
        response("401 No", "", &error),
        response("403 No", "", &error),
        response("500 Oh", &format!("Server: {KEY}\r\n"), &error),
        response("302 Found", &format!("Location: http://evil/{KEY}\r\n"), ""),
        json(KEY),
        stream(&[&error]),
    ]);
    let mut texts = vec![format!("{:?}", desk.client)];
    let once = || format!("{:?}", desk.ask());
    texts.extend((0..6).map(|_| once()));
    assert!(texts[1].contains("your key is …"), "{}", texts[1]);
    for text in &texts {
        assert!(!(0..KEY.len() - 8).any(|start| text.contains(&KEY[start..start + 8])), "{text}");
    }
}
