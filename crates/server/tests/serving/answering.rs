use glassbox_generate::{Generation, Sampling, Session, Settings};
use glassbox_mechanisms::softmax::log_probability;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_text::Specials;
use serde_json::{Value, json};

use crate::house::{House, model, tokenizer};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";
const PROMPT: &str = "The shell of Grimin is titanium. Each Fencrel is built from velvet. Which material is Grimin made of?";

/// What the model says without a server: text, tokens, and the logarithm of the probability of each.
fn alone(prompt: &str, settings: &Settings) -> (String, Vec<u32>, Vec<f64>) {
    let (model, tokenizer, workers) = (model(Kernels::Fast), tokenizer(), Workers::new(1));
    let ids = tokenizer.encode_prompt(prompt, Specials::Parse).expect("any text encodes");
    let mut session = Session::new(&model, 512, 1 << 28).expect("small");
    let mut generation = Generation::new(&model, &tokenizer, &workers, &mut session, &ids, settings).expect("it has room");
    let mut scores = Vec::new();
    while let Some(step) = generation.next_step().expect("it goes on") {
        scores.push(log_probability(&step.logits, step.id).expect("a token of the vocabulary"));
    }
    let (answer, _) = generation.finish();
    (answer.text, answer.ids, scores)
}

fn settings(sampling: Sampling, max_tokens: usize) -> Settings {
    Settings { max_tokens, sampling, stop: Vec::new(), end_ids: tokenizer().end_ids().to_vec() }
}

#[test]
fn an_answer_and_its_probabilities_are_bit_for_bit_those_of_the_engine() {
    let house = House::open();
    for (sampling, body) in [
        (Sampling::default(), json!({"temperature": 0})),
        (Sampling { temperature: 1.5, top_p: 0.9, seed: 7, ..Sampling::default() }, json!({"temperature": 1.5, "top_p": 0.9, "seed": 7})),
    ] {
        let (text, ids, scores) = alone(PROMPT, &settings(sampling, 24));
        let mut body = body;
        body["prompt"] = PROMPT.into();
        body["max_tokens"] = 24.into();
        body["logprobs"] = 3.into();
        let answer = house.post(TEXT, &body).json();
        let choice = &answer["choices"][0];
        assert_eq!(choice["text"], text.as_str());
        assert_eq!(choice["logprobs"]["token_logprobs"], json!(scores));
        assert_eq!(answer["usage"]["completion_tokens"], ids.len());
        assert_eq!(choice["finish_reason"], if ids.len() == 24 { "length" } else { "stop" });
    }
}

#[test]
fn company_and_history_change_no_bit_of_an_answer() {
    let house = House::open();
    let body = |turn: usize| json!({"prompt": format!("{PROMPT} {turn}"), "max_tokens": 16, "temperature": 0, "logprobs": 2});
    let first: Vec<Value> = (0..12).map(|turn| house.post(TEXT, &body(turn)).json()["choices"][0].clone()).collect();
    // More than there are seats, all at once, each beginning like the others.
    let together: Vec<Value> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..12)
            .map(|turn| {
                scope.spawn({
                    let house = &house;
                    move || house.post(TEXT, &body(turn)).json()
                })
            })
            .collect();
        asking.into_iter().map(|thread| thread.join().expect("it asks")["choices"][0].clone()).collect()
    });
    assert_eq!(first, together);
}

#[test]
fn a_prompt_that_begins_like_an_earlier_one_is_not_read_again() {
    let house = House::open();
    let ask = |text: &str| house.post(TEXT, &json!({"prompt": text, "max_tokens": 1, "temperature": 0})).json()["usage"].clone();
    let first = ask(PROMPT);
    assert_eq!(first["prompt_tokens_details"]["cached_tokens"], 0);
    let second = ask(&format!("{PROMPT} Why?"));
    assert_eq!(second["prompt_tokens_details"]["cached_tokens"], first["prompt_tokens"]);
    // Of a prompt that is held as a whole, the last token is read again: its logits are wanted.
    let tokens = |usage: &Value, name: &str| usage[name].as_u64().expect("a number");
    let third = ask(PROMPT);
    assert_eq!(tokens(&third["prompt_tokens_details"], "cached_tokens"), tokens(&first, "prompt_tokens") - 1);
}

#[test]
fn a_chat_is_rendered_by_the_template_of_the_model() {
    let house = House::open();
    let messages = json!([
        {"role": "system", "content": "Answer from the numbered documents and cite the one you used, like [2]."},
        {"role": "user", "content": [{"type": "text", "text": "Documents:\n[1] Each Fencrel is built from velvet.\n"},
            {"type": "text", "text": "[2] The shell of Grimin is titanium.\n\nQuestion: Which material is Grimin made of?"}]},
    ]);
    let reply = house.post(CHAT, &json!({"model": "specimen", "messages": messages, "temperature": 0, "max_tokens": 16}));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer = reply.json();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["system_fingerprint"], "fp");
    assert_eq!(answer["choices"][0]["message"]["content"], "titanium [2]");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["choices"][0]["logprobs"], Value::Null);
}

/// BL-48: zero likely tokens is not the same as no log-probabilities, and the chosen token is always told.
#[test]
fn zero_likeliest_tokens_still_means_log_probabilities() {
    let house = House::open();
    let chat = |extra: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": PROMPT}], "temperature": 0, "max_tokens": 3});
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        house.post(CHAT, &body)
    };
    for extra in [json!({"logprobs": true}), json!({"logprobs": true, "top_logprobs": 0})] {
        let content = chat(extra).json()["choices"][0]["logprobs"]["content"].clone();
        let tokens = content.as_array().expect("a list");
        assert!(!tokens.is_empty());
        for token in tokens {
            assert_eq!(token["top_logprobs"], json!([]));
            assert!(token["logprob"].as_f64().expect("a number") <= 0.0);
        }
    }
    let top = chat(json!({"logprobs": true, "top_logprobs": 4})).json()["choices"][0]["logprobs"]["content"][0].clone();
    assert_eq!(top["top_logprobs"].as_array().map(Vec::len), Some(4));
    assert_eq!(top["top_logprobs"][0]["logprob"], top["logprob"], "a greedy choice is the likeliest");
    assert_eq!((chat(json!({"top_logprobs": 5})).status, chat(json!({"logprobs": true, "top_logprobs": 21})).status), (400, 400));
    assert_eq!(chat(json!({})).json()["choices"][0]["logprobs"], Value::Null);

    // The token that was drawn is told though it is not among the likeliest.
    let drawn = json!({"prompt": PROMPT, "max_tokens": 12, "temperature": 50, "seed": 3, "logprobs": 0});
    let logprobs = house.post(TEXT, &drawn).json()["choices"][0]["logprobs"].clone();
    let tokens = logprobs["tokens"].as_array().expect("a list");
    assert_eq!(tokens.len(), 12);
    for (place, token) in tokens.iter().enumerate() {
        let top = logprobs["top_logprobs"][place].as_object().expect("an object");
        assert_eq!(top.keys().collect::<Vec<_>>(), [token.as_str().expect("a text")]);
    }
}

#[test]
fn several_prompts_and_several_choices_come_in_order_and_each_choice_has_its_seed() {
    let house = House::open();
    let body = json!({"prompt": ["One", "Two"], "n": 2, "max_tokens": 8, "temperature": 20, "seed": 5});
    let answer = house.post(TEXT, &body).json();
    let texts: Vec<&str> = (0..4).map(|choice| answer["choices"][choice]["text"].as_str().expect("a text")).collect();
    for (choice, (prompt, seed)) in [("One", 5), ("One", 6), ("Two", 5), ("Two", 6)].into_iter().enumerate() {
        let sampling = Sampling { temperature: 20.0, seed, ..Sampling::default() };
        assert_eq!(texts[choice], alone(prompt, &settings(sampling, 8)).0, "{prompt}, seed {seed}");
        assert_eq!(answer["choices"][choice]["index"], choice);
    }
    let unseeded = json!({"prompt": "One", "n": 8, "max_tokens": 8, "temperature": 20});
    let answer = house.post(TEXT, &unseeded).json();
    let mut texts: Vec<String> = (0..8).map(|choice| answer["choices"][choice]["text"].to_string()).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 8, "choices without a seed are drawn apart");
}

#[test]
fn token_ids_are_a_prompt_and_echo_puts_the_prompt_before_the_answer() {
    let house = House::open();
    let ids = tokenizer().encode_prompt(PROMPT, Specials::Parse).expect("any text encodes");
    let of = |prompt: Value| {
        house.post(TEXT, &json!({"prompt": prompt, "max_tokens": 6, "temperature": 0})).json()["choices"][0]["text"].clone()
    };
    assert_eq!(of(json!(ids)), of(json!(PROMPT)));
    assert_eq!(of(json!([ids])), of(json!(PROMPT)));
    let echoed = house.post(TEXT, &json!({"prompt": PROMPT, "max_tokens": 6, "temperature": 0, "echo": true})).json();
    assert_eq!(echoed["choices"][0]["text"], format!("{PROMPT}{}", of(json!(PROMPT)).as_str().expect("a text")));
    let nothing = house.post(TEXT, &json!({"prompt": PROMPT, "max_tokens": 0, "echo": true})).json();
    assert_eq!(nothing["choices"][0]["text"], PROMPT);
    assert_eq!(nothing["usage"]["completion_tokens"], 0);
}

#[test]
fn offsets_count_characters_and_a_stop_string_ends_the_text_before_it() {
    let house = House::open();
    let body = json!({"prompt": "资料：云帆的颜色是琥珀。", "max_tokens": 12, "temperature": 20, "seed": 11, "logprobs": 1});
    let choice = house.post(TEXT, &body).json()["choices"][0].clone();
    let text: Vec<char> = choice["text"].as_str().expect("a text").chars().collect();
    let offsets: Vec<usize> = choice["logprobs"]["text_offset"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|offset| offset.as_u64().expect("a number") as usize)
        .collect();
    for (place, offset) in offsets.iter().enumerate() {
        let token = choice["logprobs"]["tokens"][place].as_str().expect("a text");
        if !token.contains('\u{fffd}') {
            let here: String = text[*offset..].iter().take(token.chars().count()).collect();
            assert_eq!(here, token, "token {place}");
        }
    }
    let whole = choice["text"].as_str().expect("a text");
    let stop: String = whole.chars().skip(3).take(2).collect();
    let mut stopped = body.clone();
    stopped["stop"] = json!([stop]);
    let choice = house.post(TEXT, &stopped).json()["choices"][0].clone();
    assert_eq!(choice["text"], whole.split_once(&stop).expect("it is a part").0);
    assert_eq!(choice["finish_reason"], "stop");
}

#[test]
fn the_models_and_the_health_are_told() {
    let house = House::open();
    let models = house.get("/v1/models").json();
    assert_eq!((models["data"][0]["id"].as_str(), models["data"][0]["max_model_len"].as_u64()), (Some("specimen"), Some(512)));
    assert_eq!(house.get("/v1/models/specimen").json()["id"], "specimen");
    assert_eq!(house.get("/v1/models/other").status, 404);
    assert_eq!(house.get("/health").json(), json!({"status": "ok", "active": 0, "waiting": 0}));
}
