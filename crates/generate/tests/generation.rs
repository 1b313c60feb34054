//! Generation from outside: sessions, streaming, stopping and seeds, on the built-in model and on the tiny ones.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_generate::{Answer, FinishReason, Generation, GenerationError, Sampling, Session, Settings};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_text::{Specials, Tokenizer};

/// Bytes that a cache of a test may take.
const LIMIT: u64 = 1 << 28;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn model(folder: &str) -> Model {
    let checkpoint = Checkpoint::open(repository().join(folder)).expect("the model is committed");
    Model::open(&checkpoint, Kernels::Fast).expect("the model is whole")
}

fn specimen() -> (Model, Tokenizer) {
    let checkpoint = Checkpoint::open(repository().join("specimens/specimen")).expect("the model is committed");
    let tokenizer = Tokenizer::open(&checkpoint).expect("it has a tokenizer");
    (Model::open(&checkpoint, Kernels::Fast).expect("the model is whole"), tokenizer)
}

/// A prompt of exactly `tokens` tokens.
fn prompt(tokenizer: &Tokenizer, tokens: usize) -> Vec<u32> {
    let text = "Documents: [1] Daxdor is painted teal. 资料：云帆的颜色是琥珀。 ".repeat(20);
    let mut ids = tokenizer.encode(&text, Specials::Literal).expect("any text encodes");
    ids.truncate(tokens);
    assert_eq!(ids.len(), tokens);
    ids
}

fn settings(max_tokens: usize) -> Settings {
    Settings { max_tokens, sampling: Sampling::default(), stop: Vec::new(), end_ids: Vec::new() }
}

/// Runs a generation to its end; gives the pieces of the stream and the answer.
fn run(model: &Model, tokenizer: &Tokenizer, threads: usize, prompt: &[u32], settings: &Settings) -> (Vec<String>, Answer) {
    let mut session = Session::new(model, prompt.len() + settings.max_tokens, LIMIT).expect("small");
    run_in(&mut session, model, tokenizer, threads, prompt, settings)
}

fn run_in(
    session: &mut Session,
    model: &Model,
    tokenizer: &Tokenizer,
    threads: usize,
    prompt: &[u32],
    settings: &Settings,
) -> (Vec<String>, Answer) {
    let workers = Workers::new(threads);
    let mut generation = Generation::new(model, tokenizer, &workers, session, prompt, settings).expect("there is room");
    let mut pieces = Vec::new();
    while let Some(step) = generation.next_step().expect("the pass runs") {
        pieces.push(step.text);
    }
    let (answer, held) = generation.finish();
    pieces.push(held);
    (pieces, answer)
}

/// Settings that draw at random.
fn random(seed: u64) -> Settings {
    Settings { sampling: Sampling { temperature: 3.0, seed, ..Sampling::default() }, ..settings(24) }
}

#[test]
fn prompt_and_answer_together_fill_the_context_exactly() {
    let (model, tokenizer) = specimen();
    for (prompt_tokens, new_tokens) in [(60, 4), (63, 1), (1, 63)] {
        let mut session = Session::new(&model, 64, LIMIT).expect("small");
        let prompt = prompt(&tokenizer, prompt_tokens);
        let (_, answer) = run_in(&mut session, &model, &tokenizer, 1, &prompt, &settings(usize::MAX));
        assert_eq!((answer.ids.len(), answer.finish_reason), (new_tokens, FinishReason::ContextFull), "prompt of {prompt_tokens}");
    }
}

#[test]
fn a_prompt_that_leaves_no_room_is_refused_with_both_numbers() {
    let (model, tokenizer) = specimen();
    for tokens in [64, 65] {
        let mut session = Session::new(&model, 64, LIMIT).expect("small");
        let (prompt, settings) = (prompt(&tokenizer, tokens), settings(8));
        let refused = Generation::new(&model, &tokenizer, &Workers::new(1), &mut session, &prompt, &settings).err();
        let refused = refused.expect("no room for an answer");
        assert!(matches!(refused, GenerationError::PromptTooLong { .. }), "{refused:?}");
        let message = refused.to_string();
        assert!(message.contains(&format!("{tokens} tokens")) && message.contains("room for 64"), "{message}");
    }
}

#[test]
fn the_pieces_of_a_stream_join_into_the_answer() {
    let (model, tokenizer) = specimen();
    // At this temperature single bytes of characters come in any order, and the stream must still be whole.
    for seed in 0..8 {
        let hot = Settings { sampling: Sampling { temperature: 3.0, seed, ..Sampling::default() }, ..settings(40) };
        let (pieces, answer) = run(&model, &tokenizer, 1, &prompt(&tokenizer, 20), &hot);
        assert_eq!(pieces.concat(), answer.text, "seed {seed}");
        assert_eq!(answer.ids.len(), 40);
    }
}

#[test]
fn a_stop_string_cuts_the_stream_where_it_would_cut_the_finished_text() {
    let (model, tokenizer) = specimen();
    let prompt = prompt(&tokenizer, 20);
    let mut cuts_inside_tokens = 0;
    for seed in 0..4 {
        let (_, whole) = run(&model, &tokenizer, 1, &prompt, &random(seed));
        let characters: Vec<char> = whole.text.chars().collect();
        // Every string of three characters is a stop string once; most of them cross the border of a token.
        for start in (0..characters.len().saturating_sub(3)).step_by(3) {
            let stop: String = characters[start..start + 3].iter().collect();
            if stop.contains(char::REPLACEMENT_CHARACTER) {
                continue;
            }
            let (pieces, cut) = run(&model, &tokenizer, 1, &prompt, &Settings { stop: vec![stop.clone()], ..random(seed) });
            let expected = whole.text.split(&stop).next().expect("a split has a first part");
            assert_eq!((cut.text.as_str(), cut.finish_reason), (expected, FinishReason::StopString), "stop `{stop}`, seed {seed}");
            assert_eq!(pieces.concat(), cut.text);
            cuts_inside_tokens += usize::from(tokenizer.decode(&cut.ids).len() > expected.len() + stop.len());
        }
    }
    assert!(cuts_inside_tokens > 0, "no stop string ended inside a token: the test tests nothing");
}

#[test]
fn a_seed_gives_its_text_again_and_another_seed_another_text() {
    let (model, tokenizer) = specimen();
    let prompt = prompt(&tokenizer, 12);
    let of = |seed| run(&model, &tokenizer, 1, &prompt, &random(seed)).1.ids;
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let (model, tokenizer) = specimen();
    let prompt = prompt(&tokenizer, 100);
    for settings in [settings(24), random(3)] {
        let of = |threads| run(&model, &tokenizer, threads, &prompt, &settings).1;
        assert_eq!(of(1), of(2));
    }
}

#[test]
fn an_end_token_ends_the_answer_and_is_no_part_of_it() {
    let (model, tokenizer) = specimen();
    let prompt = prompt(&tokenizer, 20);
    let (_, free) = run(&model, &tokenizer, 1, &prompt, &settings(8));
    let end = free.ids[2];
    let before = free.ids.iter().position(|id| *id == end).expect("it occurs");
    let (_, ended) = run(&model, &tokenizer, 1, &prompt, &Settings { end_ids: vec![end], ..settings(8) });
    assert_eq!((ended.ids.as_slice(), ended.finish_reason), (&free.ids[..before], FinishReason::EndToken));
}

#[test]
fn no_tokens_wanted_is_an_empty_answer() {
    let (model, tokenizer) = specimen();
    let mut session = Session::new(&model, 16, LIMIT).expect("small");
    let (_, answer) = run_in(&mut session, &model, &tokenizer, 1, &prompt(&tokenizer, 10), &settings(0));
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("", FinishReason::MaxTokens));
}

#[test]
fn a_session_that_keeps_a_shared_prefix_gives_the_bits_of_a_fresh_one() {
    for name in ["llama-gqa", "qwen2-window", "gemma3-mqa", "gpt2"] {
        let model = model(&format!("fixtures/tiny/{name}"));
        let workers = Workers::new(2);
        let first: Vec<u32> = (0..20).map(|position| position * 7 % 50).collect();
        let mut kept = Session::new(&model, 32, LIMIT).expect("small");
        kept.prompt(&model, &first, &workers).expect("runs");
        // Longer, shorter, the same, different in the middle, different from the start.
        let changed =
            |from: usize| -> Vec<u32> { (0..).zip(&first).map(|(at, id)| if at >= from { (id + 1) % 50 } else { *id }).collect() };
        let longer: Vec<u32> = first.iter().copied().chain([3, 1, 4]).collect();
        for prompt in [longer, first[..9].to_vec(), first.clone(), changed(11), changed(0)] {
            let kept_logits = kept.prompt(&model, &prompt, &workers).expect("runs");
            let fresh_logits = Session::new(&model, 32, LIMIT).expect("small").prompt(&model, &prompt, &workers).expect("runs");
            assert_eq!(bits(&kept_logits), bits(&fresh_logits), "{name}, prompt of {} tokens", prompt.len());
            assert_eq!(kept.ids(), prompt);
        }
    }
}

#[test]
fn token_by_token_gives_the_bits_of_one_prompt() {
    let model = model("fixtures/tiny/gemma3-gqa");
    let workers = Workers::new(1);
    let ids: Vec<u32> = (0..24).map(|position| position * 11 % 50).collect();
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("small");
    let all = model.forward(&ids, &mut cache, Rows::All, &workers).expect("runs");
    let mut session = Session::new(&model, ids.len(), LIMIT).expect("small");
    for (position, id) in ids.iter().enumerate() {
        let logits = session.push(&model, *id, &workers).expect("runs");
        assert_eq!(bits(&logits), bits(&all[position * logits.len()..][..logits.len()]), "position {position}");
    }
}

#[test]
fn a_refused_prompt_leaves_an_empty_session_that_can_be_used_again() {
    let model = model("fixtures/tiny/llama-gqa");
    let workers = Workers::new(1);
    let mut session = Session::new(&model, 8, LIMIT).expect("small");
    session.prompt(&model, &[1, 2, 3], &workers).expect("runs");
    session.prompt(&model, &[1, 2, 99_999], &workers).expect_err("no such id");
    assert_eq!((session.ids().len(), session.room()), (0, 8));
    session.prompt(&model, &[1; 9], &workers).expect_err("too long");
    session.prompt(&model, &[1, 2, 3], &workers).expect("runs again");
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
