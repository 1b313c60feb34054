//! The native subject, on the built-in model.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::cache::KvType;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::Model;
use glassbox_record::{FailureClass, FinishReason, Message, Piece, Request, Role, Sampling};
use glassbox_subject::{Capability, NativeSubject, Subject, Watch};
use glassbox_tensor::Bytes;

/// Bytes that a cache of a test may take.
const LIMIT: u64 = 1 << 28;

const FILES: [&str; 5] = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specimens/specimen")
}

fn subject_of(checkpoint: &Checkpoint, threads: usize, memory_limit: u64) -> NativeSubject {
    let model = Model::open(checkpoint, Kernels::Fast).expect("the model is whole");
    NativeSubject::new("specimen".to_owned(), checkpoint, model, Workers::new(threads), memory_limit).expect("it has a tokenizer")
}

fn specimen() -> NativeSubject {
    subject_of(&Checkpoint::open(folder()).expect("the model is committed"), 1, LIMIT)
}

/// The built-in model with the bytes of one of its files changed.
fn changed_bytes(file: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> NativeSubject {
    let files = FILES.map(|name| {
        let bytes = std::fs::read(folder().join(name)).expect("the model is committed");
        (name.to_owned(), Bytes::new(if name == file { change(bytes) } else { bytes }))
    });
    subject_of(&Checkpoint::from_parts("changed", files.to_vec()).expect("whole"), 1, LIMIT)
}

/// The built-in model with one of its files, an object of JSON, changed.
fn changed(file: &str, change: impl Fn(&mut serde_json::Map<String, serde_json::Value>)) -> NativeSubject {
    changed_bytes(file, |bytes| {
        let mut object = serde_json::from_slice(&bytes).expect("JSON");
        change(&mut object);
        serde_json::to_vec(&object).expect("JSON")
    })
}

/// The built-in model without its chat template.
fn without_template() -> NativeSubject {
    changed("tokenizer_config.json", |config| {
        config.remove("chat_template").expect("the specimen has a template");
    })
}

/// The built-in model, for which these tokens end the turn.
fn ending_with(ids: &[u32]) -> NativeSubject {
    changed("generation_config.json", |config| {
        config.insert("eos_token_id".to_owned(), ids.into());
    })
}

/// A question about documents, with named spans; `turn` moves the documents around.
fn request(turn: usize) -> Request {
    let mut sentences = ["The colour of Zorvex is amber.", "Daxdor is painted teal.", "The shell of Grimin is titanium."];
    sentences.rotate_left(turn % 3);
    let mut pieces = vec![Piece { span: None, text: "Documents:\n".to_owned() }];
    for (index, sentence) in sentences.iter().enumerate() {
        pieces.push(Piece { span: Some(format!("document {}", index + 1)), text: format!("[{}] {sentence}", index + 1) });
        pieces.push(Piece { span: None, text: "\n".to_owned() });
    }
    pieces.push(Piece { span: None, text: "\nQuestion: ".to_owned() });
    pieces.push(Piece { span: Some("question".to_owned()), text: "What is the colour of Zorvex?".to_owned() });
    let system = Piece { span: Some("system".to_owned()), text: "Answer from the numbered documents.".to_owned() };
    Request {
        messages: vec![Message { role: Role::System, pieces: vec![system] }, Message { role: Role::User, pieces }],
        max_tokens: 12,
        sampling: Sampling::Greedy,
        stop: Vec::new(),
        seed: 1,
    }
}

#[test]
fn watching_changes_nothing_in_the_answer() {
    let subject = specimen();
    for turn in 0..3 {
        let request = request(turn);
        let answer = subject.answer(&request).expect("answers");
        let looked = subject.look(&request, &Watch::default()).expect("can be watched");
        assert_eq!(looked.answer, answer.text);
        let again = subject.answer(&request).expect("answers");
        assert_eq!((again.text, again.first_token, again.prompt), (answer.text, answer.first_token, answer.prompt), "turn {turn}");
    }
}

/// With such a model a session kept from a longer question would turn the keys of a shorter one by other angles.
#[test]
fn an_answer_does_not_depend_on_earlier_questions_where_angles_depend_on_length() {
    let stretched = || {
        changed("config.json", |config| {
            let (short, long) = (vec![1.0; 32], vec![9.0; 32]);
            let scaling = serde_json::json!({"type": "longrope", "short_factor": short, "long_factor": long, "original_max_position_embeddings": 256});
            config.insert("rope_scaling".to_owned(), scaling);
        })
    };
    let short = request(0);
    let long = Request { max_tokens: 300, ..request(1) };
    let of = |subject: &NativeSubject, request: &Request| {
        let looked = subject.look(request, &Watch::default()).expect("can be watched");
        let answer = subject.answer(request).expect("answers");
        assert_eq!(looked.answer, answer.text);
        (answer.text, answer.first_token, looked.layers)
    };
    let alone = of(&stretched(), &short);
    let subject = stretched();
    let of_long = of(&subject, &long);
    assert!(of(&subject, &short) == alone);
    assert!(of(&subject, &long) == of_long);
    assert!(of(&subject, &Request { max_tokens: 300, ..short }).1 != alone.1, "the longer session has other angles");
}

#[test]
fn what_is_seen_does_not_depend_on_what_was_asked_before() {
    let (fresh, busy) = (specimen(), specimen());
    let looked = fresh.look(&request(0), &Watch::default()).expect("can be watched");
    for turn in [1, 2, 0, 0] {
        busy.answer(&request(turn)).expect("answers");
    }
    assert_eq!(busy.look(&request(0), &Watch::default()).expect("can be watched"), looked);
}

#[test]
fn the_storage_of_the_cache_is_a_fact_and_is_used_for_answer_and_look() {
    assert_eq!(specimen().identity().facts["cache"], "f32");
    for kv_type in KvType::ALL {
        let subject = specimen().with_kv_type(kv_type);
        assert_eq!(subject.identity().facts["cache"], kv_type.name());
        let answer = subject.answer(&request(0)).expect("answers");
        assert_eq!(subject.look(&request(0), &Watch::default()).expect("can be watched").answer, answer.text);
        let moved = answer.first_token != specimen().answer(&request(0)).expect("answers").first_token;
        assert_eq!(moved, kv_type != KvType::F32, "log-probabilities show that {kv_type} was used");
    }
}

#[test]
fn masses_are_shares_and_the_uniform_baseline_is_the_share_of_visible_keys() {
    let subject = specimen();
    let looked = subject.look(&request(1), &Watch { heads_in_full: 2 }).expect("can be watched");
    let names: Vec<&str> = looked.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["system", "document 1", "document 2", "document 3", "question", "answer"]);
    assert_eq!(looked.layers.len(), 3);
    // The rows that chose an answer token: the last of the prompt, and each of the answer but the last.
    let prompt_tokens = looked.spans[5].first_token;
    let rows = prompt_tokens - 1..prompt_tokens - 1 + looked.answer_rows;
    for layer in &looked.layers {
        for masses in layer.heads.iter().chain([&layer.mass]) {
            let total: f64 = masses.iter().sum();
            // Weights are f32 and a row has some hundred of them: their rounding stays far below this.
            assert!(
                masses.iter().all(|mass| (0.0..=1.0 + 1e-4).contains(mass)) && total <= 1.0 + 1e-4,
                "layer {}: {masses:?}",
                layer.layer
            );
        }
        for (span, uniform) in looked.spans.iter().zip(&layer.uniform) {
            let share =
                |row: usize| (span.first_token..span.first_token + span.tokens).filter(|key| *key <= row).count() as f64 / (row + 1) as f64;
            let expected = rows.clone().map(share).sum::<f64>() / rows.len() as f64;
            assert!((uniform - expected).abs() < 1e-12, "{}: {uniform} instead of {expected}", span.name);
        }
        for ((mass, uniform), lift) in layer.mass.iter().zip(&layer.uniform).zip(&layer.lift) {
            assert_eq!(*lift, (*uniform > 0.0).then(|| mass / uniform));
        }
    }
}

#[test]
fn heads_in_full_hold_rows_that_sum_to_one_and_agree_with_the_masses() {
    let subject = specimen();
    let looked = subject.look(&request(0), &Watch { heads_in_full: 3 }).expect("can be watched");
    assert_eq!(looked.maps.len(), 3);
    for map in &looked.maps {
        assert_eq!((map.queries.len(), map.weights.len()), (looked.answer_rows, looked.answer_rows));
        for (query, weights) in map.queries.iter().zip(&map.weights) {
            assert_eq!(weights.len(), query + 1, "keys up to the query's own");
            let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
            assert!((total - 1.0).abs() < 1e-4, "layer {} head {}: row {query} sums to {total}", map.layer, map.head);
        }
        for (index, span) in looked.spans.iter().enumerate() {
            let of_row =
                |weights: &Vec<f32>| weights.iter().skip(span.first_token).take(span.tokens).map(|weight| f64::from(*weight)).sum::<f64>();
            let mean = map.weights.iter().map(of_row).sum::<f64>() / map.weights.len() as f64;
            let mass = looked.layers[map.layer].heads[map.head][index];
            assert!((mean - mass).abs() < 1e-6, "{} at {}.{}: {mean} and {mass}", span.name, map.layer, map.head);
        }
    }
}

#[test]
fn answers_do_not_depend_on_what_was_asked_before_nor_on_threads() {
    let checkpoint = Checkpoint::open(folder()).expect("the model is committed");
    let (one_after_the_other, threaded) = (subject_of(&checkpoint, 1, LIMIT), subject_of(&checkpoint, 2, LIMIT));
    for turn in [0, 1, 2, 1, 0] {
        let fresh = specimen().answer(&request(turn)).expect("answers");
        for kept in [&one_after_the_other, &threaded] {
            let kept = kept.answer(&request(turn)).expect("answers");
            assert_eq!((&kept.text, &kept.first_token), (&fresh.text, &fresh.first_token), "turn {turn}");
        }
    }
}

#[test]
fn a_model_without_a_template_is_asked_in_plain_text_with_the_same_spans() {
    let (subject, templated) = (without_template(), specimen());
    let (request, watch) = (request(0), Watch { heads_in_full: 1 });
    let template = subject.identity().facts["template"].clone();
    assert!(template.starts_with("none: plain text"), "{template}");
    let plain = subject.look(&request, &watch).expect("can be watched");
    let chat = templated.look(&request, &watch).expect("can be watched");
    let names = |looked: &glassbox_record::Looked| looked.spans.iter().map(|span| span.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&plain), names(&chat));
    let prompt: String = plain.tokens[..plain.spans[5].first_token].iter().map(|token| token.text.as_str()).collect();
    assert!(prompt.contains("Answer from the numbered documents.\nDocuments:\n[1] The colour of Zorvex is amber.\n"), "{prompt}");
    assert!(!prompt.contains("<|user|>"), "{prompt}");
}

#[test]
fn an_answer_that_ends_at_once_shows_the_first_token_that_ended_it() {
    let told = specimen().answer(&request(0)).expect("answers");
    let first = told.first_token[0].id.expect("a native subject shows ids");
    let ended = ending_with(&[first]).answer(&request(0)).expect("answers");
    assert_eq!((ended.text.as_str(), ended.answer_tokens, ended.finish), ("", Some(0), FinishReason::EndOfTurn));
    assert_eq!(ended.first_token, told.first_token);
    assert!(ended.timing.first_token_ms.is_some_and(|first| first <= ended.timing.total_ms));
}

#[test]
fn a_model_that_computes_no_numbers_fails_by_its_class_even_where_it_would_end_at_once() {
    let last_norm = |bytes: Vec<u8>| {
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
        let tensors: serde_json::Value = serde_json::from_slice(&bytes[8..header]).expect("JSON");
        let at = header + tensors["model.norm.weight"]["data_offsets"][0].as_u64().expect("a number") as usize;
        [&bytes[..at], &0x7E00_u16.to_le_bytes(), &bytes[at + 2..]].concat()
    };
    let broken = changed_bytes("model.safetensors", last_norm);
    // No token at all is asked for, so nothing but the prompt's own row can tell.
    for max_tokens in [0, 12] {
        let error = broken.answer(&Request { max_tokens, ..request(0) }).expect_err("nothing can be chosen");
        assert_eq!(error.class, FailureClass::Numeric);
        assert!(error.message.contains("the logit of token 0 is NaN after"), "{}", error.message);
    }
}

#[test]
fn each_trouble_has_its_class() {
    let class = |subject: &NativeSubject, request: &Request| subject.answer(request).expect_err("cannot be answered").class;
    let mut long = request(0);
    long.messages[1].pieces[0].text = "Daxdor is painted teal. ".repeat(200);
    let error = specimen().answer(&long).expect_err("longer than the context");
    assert_eq!(error.class, FailureClass::ContextTooLong);
    assert!(error.message.contains("512"), "{}", error.message);

    let checkpoint = Checkpoint::open(folder()).expect("the model is committed");
    assert_eq!(class(&subject_of(&checkpoint, 1, 1024), &request(0)), FailureClass::Memory);

    let hot = Request { sampling: Sampling::Temperature(f64::NAN), ..request(0) };
    assert_eq!(class(&specimen(), &hot), FailureClass::Rejected);
}

#[test]
fn a_subject_names_what_may_change_its_answers() {
    let identity = specimen().identity();
    for fact in ["weights", "settings", "template", "architecture", "kernels", "cache"] {
        assert!(identity.facts.contains_key(fact), "{fact} is missing in {:?}", identity.facts);
    }
    assert_ne!(identity.facts, without_template().identity().facts);
    for capability in [Capability::Attention, Capability::FirstToken, Capability::TokenIds] {
        assert!(specimen().shows(capability));
    }
}
