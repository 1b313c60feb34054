//! The two real models against llama.cpp: `make models`, then `make test-real`.
//!
//! llama.cpp multiplies quantised weights with activations rounded to 8 bits, for K types in groups of 256; this engine with exact ones, or
//! rounded in groups of 32. That moves logits by about a tenth, so a choice between two logits that are closer than some 0.2 may turn, and after
//! it the texts differ. Up to the first such place they must be equal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_generate::{Generation, Sampling, Session, Settings};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Activations, Model};
use glassbox_text::{Specials, Tokenizer};
use serde::Deserialize;

/// Gap of llama.cpp's own two largest logits under which a choice may turn. Exact activations differ from llama.cpp's by its rounding alone.
/// Rounded ones differ by two roundings that know nothing of one another; this engine's moves logits 0.55 times as far (0.063 of their spread
/// against 0.114, Gemma), so together they reach √(1 + 0.55²) = 1.14 times as far as one.
fn close(activations: Activations) -> f64 {
    match activations {
        Activations::Exact => 0.2,
        Activations::Rounded => 0.2 * 1.14,
    }
}

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
    for ((name, reference), activations) in references.iter().flat_map(|one| [(one, Activations::Exact), (one, Activations::Rounded)]) {
        let name = format!("{name}, {activations:?}").to_lowercase();
        let checkpoint = Checkpoint::open(folder.join(&reference.file)).expect("the model opens");
        let model = Model::open_with(&checkpoint, Kernels::Fast, activations, &workers).expect("the model is read");
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
            let close = case.gaps.iter().position(|gap| *gap < close(activations)).unwrap_or(case.gaps.len());
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
