//! Answers in every form in which servers send them.

use glassbox_endpoint::{Api, Ask, Features, Prompt, Reply};
use std::time::Duration;

use crate::server::{Play, STREAM, json, response, stream};
use crate::{Desk, GOOD, chat};

fn told(play: Play) -> Reply {
    Desk::new(vec![play]).ask().expect("an answer")
}

#[test]
fn an_answer_in_one_piece_is_read_with_a_length_and_in_chunks() {
    let chunked = |sizes: &[usize]| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nServer: s/1\r\n\r\n".to_vec();
        let mut rest = GOOD.as_bytes();
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
            bytes.extend(piece.iter().chain(b"\r\n"));
            rest = after;
            if piece.is_empty() {
                return Play::Bytes(bytes);
            }
        }
        unreachable!("the sizes repeat until the text is at its end")
    };
    let with_mark = format!("\u{feff}{GOOD}");
    for play in [json(GOOD), json(&with_mark), chunked(&[1]), chunked(&[7, 300])] {
        let reply = told(play);
        assert_eq!((reply.text.as_str(), reply.finish_reason.as_deref(), reply.model.as_deref()), ("teal", Some("stop"), Some("served")));
        assert_eq!((reply.usage.prompt_tokens, reply.usage.answer_tokens, reply.first_token_ms), (Some(7), Some(1), None));
        assert!(!reply.streamed && reply.total_ms > 0.0 && reply.retries.is_empty());
    }
}

const EVENTS: &str = concat!(
    ": hello\n\n",
    r#"data: {"model":"served","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm "}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"té"},"logprobs":{"content":[{"token":"té","logprob":-0.5,"top_logprobs":[{"token":"té","logprob":-0.5},{"token":"no","logprob":-1.5}]}]}}]}"#,
    "\n\n",
    ": ping\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another choice\"}},\ndata: {\"index\":0,\"delta\":{\"content\":\"al🦀\"}}]}\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
    "\n\n",
    "data: [DONE]\n\n",
);

fn check_stream(reply: &Reply) {
    assert_eq!((reply.text.as_str(), reply.reasoning.as_deref(), reply.finish_reason.as_deref()), ("téal🦀", Some("hm "), Some("length")));
    let usage = &reply.usage;
    let counts = [usage.prompt_tokens, usage.answer_tokens, usage.cached_prompt_tokens, usage.reasoning_tokens];
    assert_eq!(counts, [Some(9), Some(4), Some(8), Some(2)]);
    let first: Vec<(&str, f64)> = reply.first_token.iter().map(|token| (token.text.as_str(), token.log_probability)).collect();
    assert_eq!(first, [("té", -0.5), ("no", -1.5)]);
    assert_eq!((reply.model.as_deref(), reply.system_fingerprint.as_deref()), (Some("served"), Some("fp")));
    assert!(reply.streamed && reply.first_token_ms.is_some_and(|first| first <= reply.total_ms));
}

#[test]
fn a_stream_is_read_wherever_the_network_cuts_it() {
    let all = format!("{STREAM}{EVENTS}").into_bytes();
    // One connection with every byte on its own; then one for each of many cuts, since a connection a byte would cost minutes.
    let single = all.chunks(1).map(<[u8]>::to_vec).collect();
    check_stream(&told(Play::Slowly(single, Duration::ZERO)));
    for at in (1..all.len()).step_by(17) {
        let (before, after) = all.split_at(at);
        check_stream(&told(Play::Slowly(vec![before.to_vec(), after.to_vec()], Duration::ZERO)));
    }
}

#[test]
fn a_stream_may_use_any_line_ends_and_lack_its_last_words() {
    let play = |events: &str| Play::Bytes(format!("{STREAM}{events}").into_bytes());
    check_stream(&told(play(&EVENTS.replace('\n', "\r\n"))));
    check_stream(&told(play(&EVENTS.replace("data: [DONE]\n\n", ""))));
    check_stream(&told(play(EVENTS.trim_end())));
    check_stream(&told(play(&EVENTS.replace("data: ", "data:"))));
}

#[test]
fn what_an_endpoint_does_not_tell_is_unknown() {
    let reply = told(json(r#"{"choices":[{"message":{"content":null},"finish_reason":null}]}"#));
    assert_eq!((reply.text.as_str(), reply.finish_reason, reply.usage.prompt_tokens, reply.model), ("", None, None, None));
    let reply = told(stream(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#, "[DONE]"]));
    assert_eq!((reply.text.as_str(), reply.finish_reason, reply.usage.answer_tokens), ("x", None, None));
    let reply = told(json(
        r#"{"choices":[{"message":{"content":"x","reasoning":"y"},"finish_reason":"content_filter","logprobs":null}],"usage":null}"#,
    ));
    assert_eq!((reply.reasoning.as_deref(), reply.finish_reason.as_deref()), (Some("y"), Some("content_filter")));
    let reply = told(json(r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]},"finish_reason":"tool_calls"}]}"#));
    assert_eq!((reply.text.as_str(), reply.finish_reason.as_deref()), ("", Some("tool_calls")));
    let reply = told(json(r#"{"choices":[{"message":{"content":null,"refusal":"I cannot"},"finish_reason":"stop"}]}"#));
    assert_eq!(reply.text, "I cannot");
}

#[test]
fn completions_give_their_text_and_their_first_token() {
    let ask = Ask { prompt: Prompt::Text("One,".to_owned()), ..chat() };
    assert_eq!(ask.prompt.api(), Api::Completions);
    let body = r#"{"choices":[{"text":" two","logprobs":{"tokens":[" two"],"token_logprobs":[-0.25],"top_logprobs":[{" 2":-2.0," two":-0.25}],"text_offset":[4]},"finish_reason":"length"}]}"#;
    let desk = Desk::new(vec![json(body)]);
    let reply = desk.client.ask("m", &Features::plain(), &ask).expect("an answer");
    let first: Vec<(&str, f64)> = reply.first_token.iter().map(|token| (token.text.as_str(), token.log_probability)).collect();
    assert_eq!((reply.text.as_str(), first.as_slice()), (" two", [(" two", -0.25), (" 2", -2.0)].as_slice()));
    let request = desk.server.requests().remove(0);
    assert!(request.starts_with("POST /v1/completions HTTP/1.1\r\n") && request.contains(r#""prompt":"One,""#), "{request}");
}

#[test]
fn the_key_goes_into_the_header_and_text_comes_as_it_is_told() {
    let desk = Desk::new(vec![response("200 OK", "Content-Type: text/event-stream; charset=utf-8\r\n", EVENTS)]);
    let mut heard = Vec::new();
    let reply = desk.client.ask_with("m", &Features::all(), &chat(), &mut |text| heard.push(text.to_owned())).expect("an answer");
    check_stream(&reply);
    heard.retain(|text| !text.is_empty());
    assert_eq!(heard, ["té", "al🦀"]);
    let request = desk.server.requests().remove(0);
    assert!(request.to_lowercase().contains(&format!("authorization: bearer {}\r\n", crate::KEY)), "{request}");
}
