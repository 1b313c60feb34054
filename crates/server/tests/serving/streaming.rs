use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::house::{House, reply};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

fn chat() -> Value {
    json!({
        "messages": [{"role": "user", "content": "Tell me of Grimin."}],
        "max_tokens": 3, "temperature": 20, "seed": 4, "logprobs": true, "top_logprobs": 2,
    })
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    body
}

/// BL-66: what clients rely on in a stream.
#[test]
fn a_stream_has_its_role_first_one_finish_reason_its_usage_and_its_terminator() {
    let house = House::open();
    let whole = house.post(CHAT, &chat()).json();
    let reply = house.post(CHAT, &streamed(chat()));
    assert!(reply.head.contains("content-type: text/event-stream"), "{}", reply.head);
    let mut events = reply.events();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    let chunks: Vec<Value> = events.iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
    let (usage, chunks) = chunks.split_last().expect("chunks");
    assert_eq!(usage["choices"], json!([]));
    for name in ["prompt_tokens", "completion_tokens", "total_tokens"] {
        assert_eq!(usage["usage"][name], whole["usage"][name], "{name}");
    }
    let mut text = String::new();
    let mut scores = Vec::new();
    for (place, chunk) in chunks.iter().enumerate() {
        let choice = &chunk["choices"][0];
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert!(chunk.get("usage").is_none());
        assert_eq!(choice["delta"].get("role").is_some(), place == 0);
        let last = place + 1 == chunks.len();
        assert_eq!(choice["finish_reason"], if last { json!("length") } else { Value::Null });
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        scores.extend(choice["logprobs"]["content"].as_array().cloned().unwrap_or_default());
    }
    assert_eq!(whole["choices"][0]["message"]["content"], text);
    assert_eq!(whole["choices"][0]["logprobs"]["content"], json!(scores));
    assert_eq!(scores.len(), 3);
}

#[test]
fn a_streamed_completion_joins_to_the_whole_one_choice_by_choice() {
    let house = House::open();
    let body = json!({"prompt": ["资料：", "Grimin"], "n": 2, "max_tokens": 9, "temperature": 20, "seed": 1, "echo": true, "stop": ["e"]});
    let whole = house.post(TEXT, &body).json();
    let mut texts = vec![String::new(); 4];
    let mut finished = vec![Value::Null; 4];
    let events = house.post(TEXT, &streamed(body)).events();
    for chunk in events.iter().filter_map(|event| serde_json::from_str::<Value>(event).ok()) {
        for choice in chunk["choices"].as_array().expect("a list") {
            let index = choice["index"].as_u64().expect("a number") as usize;
            texts[index].push_str(choice["text"].as_str().expect("a text"));
            if !choice["finish_reason"].is_null() {
                assert!(finished[index].is_null(), "one end a choice");
                finished[index] = choice["finish_reason"].clone();
            }
        }
    }
    for index in 0..4 {
        assert_eq!(whole["choices"][index]["text"], texts[index].as_str());
        assert_eq!(whole["choices"][index]["finish_reason"], finished[index]);
    }
}

#[test]
fn requests_that_follow_one_another_on_one_connection_are_answered_in_order() {
    let house = House::open();
    let body = |word: &str| {
        let body = streamed(json!({"prompt": word, "max_tokens": 2, "temperature": 0, "echo": true})).to_string();
        format!("POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let last = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stream = house.connect();
    stream.write_all(format!("{}{}{last}", body("first"), body("second")).as_bytes()).expect("it reads");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it answers");
    let text = String::from_utf8(bytes).expect("UTF-8");
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3, "{text}");
    assert_eq!(text.matches("[DONE]").count(), 2);
    let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    assert!(place("\"first\"") < place("\"second\"") && place("\"second\"") < place("\"status\""));
    assert_eq!(reply(&text).status, 200);
}
