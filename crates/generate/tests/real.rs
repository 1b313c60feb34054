//! The two real models against llama.cpp: `make models`, then `make test-real`.
//!
//! llama.cpp multiplies quantised weights with activations rounded to 8 bits, this engine with activations in f32. That moves logits by
//! about a tenth, so a choice between two logits that are closer than 0.2 may turn, and after it the texts differ. Up to the first such
//! place they must be equal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_generate::{Generation, Sampling, Session, Settings};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::Model;
use glassbox_text::{Specials, Tokenizer};
use serde::Deserialize;

/// Gap of llama.cpp's own two largest logits under which a choice may turn.
const CLOSE: f64 = 0.2;

#[derive(Deserialize)]
struct Reference {
    file: String,
    cases: Vec<Case>,
}

/// One prompt, continued by llama.cpp (`fixtures/real/make.py`).
#[derive(Deserialize)]
struct Case {
    prompt: String,
    prompt_ids: Vec<u32>,
    answer_ids: Vec<u32>,
    gaps: Vec<f64>,
}

#[test]
#[expect(clippy::print_stdout, reason = "how far the texts agree is worth reading where they do")]
fn greedy_texts_equal_those_of_llama_cpp_up_to_its_first_close_choice() {
    let folder = PathBuf::from(std::env::var_os("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder of `make models`"));
    let references: BTreeMap<String, Reference> =
        serde_json::from_str(include_str!("../../../fixtures/real/greedy.json")).expect("the fixture is valid");
    let workers = Workers::new(2);
    let mut failures = Vec::new();
    for (name, reference) in &references {
        let checkpoint = Checkpoint::open(folder.join(&reference.file)).expect("the model opens");
        let model = Model::open(&checkpoint, Kernels::Fast).expect("the model is read");
        let tokenizer = Tokenizer::open(&checkpoint).expect("the tokenizer is read");
        let mut equal_tokens = 0;
        for case in &reference.cases {
            let ids = tokenizer.encode_prompt(&case.prompt, Specials::Parse).expect("the prompt has tokens");
            assert_eq!(ids, case.prompt_ids, "{name}: ids of {:?}", case.prompt);
            let settings =
                Settings { max_tokens: case.answer_ids.len(), sampling: Sampling::default(), stop: Vec::new(), end_ids: Vec::new() };
            let mut session = Session::new(&model, ids.len() + settings.max_tokens, 1 << 30).expect("there is memory");
            let mut generation = Generation::new(&model, &tokenizer, &workers, &mut session, &ids, &settings).expect("the prompt is read");
            let mut answer = Vec::new();
            while let Some(step) = generation.next_step().expect("the pass succeeds") {
                answer.push(step.id);
            }
            let close = case.gaps.iter().position(|gap| *gap < CLOSE).unwrap_or(case.gaps.len());
            let parted = answer.iter().zip(&case.answer_ids).position(|(here, there)| here != there).unwrap_or(answer.len());
            equal_tokens += parted;
            println!("{name}: equal for {parted} of {} tokens, first close choice at {close}: {:?}", answer.len(), case.prompt);
            if parted < close {
                failures.push(format!("{name}: {:?} parts at token {parted}, where llama.cpp's gap is {}", case.prompt, case.gaps[parted]));
            }
        }
        println!("{name}: {equal_tokens} tokens equal in all");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
