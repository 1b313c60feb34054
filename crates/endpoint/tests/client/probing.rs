//! What the probe finds out, and what it does where an endpoint refuses.

use glassbox_endpoint::{Address, Api, Client, Clock, Features, MaxTokensField, Secret};
use glassbox_record::FailureClass;
use std::sync::Arc;

use crate::server::{Play, Server, json, response, stream};
use crate::{Desk, StillClock, settings};

const MODELS: &str = r#"{"object":"list","data":[{"id":"other"},{"id":"m","max_model_len":4096}]}"#;
const FULL: [&str; 3] = [
    r#"{"model":"m-2026","system_fingerprint":"fp_1","choices":[{"delta":{"content":"Yes"},"logprobs":{"content":[{"token":"Yes","logprob":-0.1,"top_logprobs":[{"token":"Yes","logprob":-0.1},{"token":"No","logprob":-3.0}]}]},"finish_reason":"length"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
    "[DONE]",
];

#[test]
fn an_endpoint_that_can_everything_is_found_out_with_three_requests() {
    let models = response("200 OK", "Content-Type: application/json\r\nServer: vllm/9\r\n", MODELS);
    let desk = Desk::new(vec![models, stream(&FULL), json(r#"{"tokens":[1,2],"count":2}"#)]);
    let probed = desk.client.probe(Api::Chat).expect("an endpoint");
    assert_eq!((probed.model.as_str(), probed.features, probed.context), ("m", Features::all(), Some(4096)));
    let facts: Vec<String> = probed.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        facts,
        [
            "/tokenize: yes".to_owned(),
            "api: chat".to_owned(),
            "context: 4096".to_owned(),
            format!("endpoint: {}", desk.server.base),
            "limit: max_tokens".to_owned(),
            "listed in /models: yes".to_owned(),
            "log probabilities: yes".to_owned(),
            "model: m".to_owned(),
            "seed: accepted".to_owned(),
            "served model: m-2026".to_owned(),
            "server: vllm/9".to_owned(),
            "streaming: yes".to_owned(),
            "system_fingerprint: fp_1".to_owned(),
            "usage: yes".to_owned(),
        ]
    );
    let requests = desk.server.requests();
    assert!(requests[0].starts_with("GET /v1/models ") && requests[2].starts_with("POST /tokenize "), "{requests:?}");
}

#[test]
fn what_is_refused_is_left_out_and_said() {
    let refused = |field: &str| response("400 Bad", "", &format!(r#"{{"error":{{"message":"unknown field {field}"}}}}"#));
    let plain = r#"{"choices":[{"message":{"content":"Yes"},"finish_reason":"stop"}]}"#;
    let desk = Desk::new(vec![
        response("404 Not Found", "", ""),
        refused("max_tokens, use max_completion_tokens"),
        refused("logprobs"),
        refused("seed"),
        refused("stream_options"),
        json(plain),
        response("404 Not Found", "", ""),
    ]);
    let probed = desk.client.probe(Api::Chat).expect("an endpoint");
    let features = Features { stream: true, max_tokens: MaxTokensField::MaxCompletionTokens, ..Features::plain() };
    assert_eq!(probed.features, features);
    let fact = |name: &str| probed.facts[name].as_str();
    assert_eq!(
        ["streaming", "usage", "log probabilities", "seed", "/tokenize", "context", "system_fingerprint"].map(fact),
        ["no", "no", "no", "refused", "no", "not told", "not told"]
    );
}

#[test]
fn a_model_must_be_named_unless_there_is_only_one() {
    let probe = |models: Play| {
        let server = Server::playing(vec![models, stream(&FULL), json("{}")]);
        let address = Address::parse(&server.base, None).expect("an address");
        let key = Secret::new(crate::KEY, "KEY").expect("usable");
        Client::new(address, key, settings(), Arc::new(StillClock::default()) as Arc<dyn Clock>).probe(Api::Chat)
    };
    assert_eq!(probe(json(r#"{"data":[{"id":"only"}]}"#)).expect("one model").model, "only");
    let failure = probe(json(MODELS)).expect_err("two models");
    assert!(failure.message.contains("#MODEL`; the endpoint has other, m"), "{failure}");
    assert!(probe(response("404 No", "", "")).expect_err("none").message.ends_with("the endpoint lists none"));
}

#[test]
fn an_endpoint_that_is_not_there_or_refuses_the_key_is_no_endpoint() {
    let desk = Desk::new(vec![response("401 No", "", ""), response("401 No", "", "")]);
    let failure = desk.client.probe(Api::Chat).expect_err("no key");
    assert_eq!((failure.class, desk.server.requests().len()), (FailureClass::Rejected, 2));
    let desk = Desk::new(Vec::new());
    assert_eq!(desk.client.probe(Api::Chat).expect_err("nobody").class, FailureClass::Connection);
}
