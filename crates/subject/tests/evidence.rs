//! What an answer came from: the ledger on every family, knockouts against masks, and the built-in model on items that it was not trained on.

use std::ops::Range;
use std::path::PathBuf;

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_checkpoint::Checkpoint;
use glassbox_generate::Session;
use glassbox_lens::{AttentionRows, HeadRef, Knockout, LastRow, NextTokens, Panel};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_subject::{Evidence, NamedSpan, Says};
use glassbox_tensor::{View, ViewMut};
use glassbox_testkit::Golden;
use glassbox_text::{ChatTemplate, Message, Piece, Prompt, RenderOptions, Tokenizer};

const LIMIT: u64 = 1 << 28;

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Every tiny decoder with its golden prompt.
fn decoders() -> impl Iterator<Item = (String, Model, Vec<u32>)> {
    let folders = std::fs::read_dir(repository("fixtures/tiny")).expect("the fixtures are committed").flatten();
    let mut names: Vec<String> = folders.filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with("bert") && repository("fixtures/tiny").join(name).join("golden.safetensors").exists());
    names.sort();
    names.into_iter().map(|name| {
        let folder = repository("fixtures/tiny").join(&name);
        let ids = Golden::open(&folder).expect("committed").ids().to_vec();
        let model = Model::open(&Checkpoint::open(&folder).expect("whole"), Kernels::Fast).expect("whole");
        (name, model, ids)
    })
}

fn session(model: &Model, tokens: usize) -> Session {
    Session::new(model, tokens, LIMIT).expect("small")
}

fn span(name: &str, tokens: Range<usize>) -> NamedSpan {
    NamedSpan { name: name.to_owned(), tokens }
}

/// Keeps the values of every key.
#[derive(Default)]
struct Values(Vec<Vec<f32>>);

impl Observer for Values {
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Value { Interest::See } else { Interest::Nothing }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        self.0.resize_with(self.0.len().max(at.layer + 1), Vec::new);
        self.0[at.layer].extend_from_slice(value.values());
    }
}

#[test]
fn the_ledger_adds_up_to_the_logit_on_every_family() {
    let mut families = std::collections::BTreeSet::new();
    for (name, model, ids) in decoders() {
        families.insert(model.blueprint().family);
        let n = ids.len();
        let spans = [span("first", 0..n / 3), span("second", n / 3..n / 2), span("empty", n / 2..n / 2), span("end", n - 2..n)];
        for (answer, against) in [(None, None), (Some(7), None), (Some(7), Some(3))] {
            let evidence =
                Evidence::weigh(&model, &Workers::new(1), &mut session(&model, n), &ids, &spans, answer, against).expect("a sum");
            let of_parts: f64 = evidence.spans.iter().map(|span| span.ledger).sum::<f64>() + evidence.elsewhere;
            let of_heads: f64 = evidence.heads.iter().flatten().sum();
            assert!((of_parts - of_heads).abs() < 1e-9, "{name}");
            // The bound that is promised; logits of these models are below 10, and rounding in f32 stays far below it.
            assert!(evidence.rounding.abs() < 1e-3, "{name}: {} of {}", evidence.rounding, evidence.logit);
            let whole = evidence.logit.abs() + of_heads.abs();
            assert!(whole > 10.0 * evidence.rounding.abs(), "{name}: the sum says nothing");
            for of_span in &evidence.spans {
                let by_head: f64 = of_span.by_head.iter().flatten().sum();
                assert!((by_head - of_span.ledger).abs() < 1e-12, "{name}");
            }
        }
    }
    assert!(families.len() >= 14, "{families:?}");
}

/// By hand: the value of one key, times its weight, through the head as if it were all that the head had mixed.
#[test]
fn each_entry_of_the_ledger_is_one_weighted_value_through_its_head() {
    for (name, model, ids) in decoders() {
        let (n, heads) = (ids.len(), model.blueprint().attention.heads);
        let all: Vec<HeadRef> =
            (0..model.blueprint().layers.len()).flat_map(|layer| (0..heads.heads()).map(move |head| HeadRef { layer, head })).collect();
        let (mut rows, mut attention, mut values) =
            (LastRow::new(&[Site::AttnOut, Site::BlockOut]), AttentionRows::new(n - 1..n, &all), Values::default());
        let mut panel = Panel::new(vec![&mut rows, &mut attention, &mut values]);
        session(&model, n).prompt_observed(&model, &ids, Rows::Last, &Workers::new(1), &mut panel).expect("known ids");
        let attention = attention.finish();
        let last = model.blueprint().layers.len() - 1;
        let direction = model.logit_direction(rows.row(Site::BlockOut, last).expect("seen"), 5).expect("a sum");
        let spans: Vec<NamedSpan> = (0..n - 1).map(|key| span("key", key..key + 1)).collect();
        let evidence = Evidence::weigh(&model, &Workers::new(1), &mut session(&model, n), &ids, &spans, Some(5), None).expect("a sum");
        // MPT may bound what is projected, after the site.
        let bound = if name == "mpt-clip" { 1.5 } else { f32::INFINITY };
        for layer in 0..=last {
            let attn_out = rows.row(Site::AttnOut, layer).expect("seen");
            for (key, of_key) in evidence.spans.iter().enumerate() {
                let (mut wanted, mut sizes) = (vec![0.0; heads.heads()], vec![0.0; heads.heads()]);
                for channel in 0..heads.d_head() {
                    let mut mixed = vec![0.0; heads.query_width()];
                    for head in 0..heads.heads() {
                        let value = values.0[layer][key * heads.kv_width() + heads.kv_head_of(head) * heads.d_head() + channel];
                        mixed[head * heads.d_head() + channel] = attention[&HeadRef { layer, head }][0].1[key] * value.clamp(-bound, bound);
                    }
                    let parts = model.head_parts(layer, &mixed, attn_out, &direction).heads;
                    wanted.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part);
                    sizes.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part.abs());
                }
                for head in 0..heads.heads() {
                    let found = of_key.by_head[layer][head];
                    // Of every product: the direction, the product and each of d_head sums are rounded to f32, here the weighted value too.
                    let near = (heads.d_head() + 4) as f64 * f64::from(f32::EPSILON) * sizes[head];
                    assert!(
                        (found - wanted[head]).abs() <= near,
                        "{name}, {layer}.{head}, key {key}: {found}, wanted {} within {near}",
                        wanted[head]
                    );
                }
            }
        }
    }
}

/// The definition of a knockout: minus infinity written into the scores.
struct Masked {
    queries: Range<usize>,
    keys: Range<usize>,
    layers: Range<usize>,
}

impl Observer for Masked {
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Scores && self.layers.contains(&at.layer) { Interest::Edit } else { Interest::Nothing }
    }

    fn edit(&mut self, at: At, mut value: ViewMut<'_>) {
        let Ok([_, queries, keys]) = value.view().sizes_of(["head", "query", "key"]) else { return };
        for (index, score) in value.values().iter_mut().enumerate() {
            if self.queries.contains(&(at.first_row + index / keys % queries)) && self.keys.contains(&(index % keys)) {
                *score = f32::NEG_INFINITY;
            }
        }
    }
}

#[test]
fn a_knockout_is_a_mask_on_every_family_and_one_of_nothing_changes_no_bit() {
    for (name, model, ids) in decoders() {
        let n = ids.len();
        let run = |observer: &mut dyn Observer| {
            let mut session = session(&model, n);
            session.prompt_observed(&model, &ids, Rows::All, &Workers::new(1), observer).expect("known ids")
        };
        let plain = run(&mut glassbox_anatomy::Off);
        for (queries, keys, layers) in [(n / 2..n, 1..n / 2, 0..9), (n - 1..n, 0..n - 1, 1..2), (4..n, 0..4, 0..1)] {
            let found = run(&mut Knockout::new(queries.clone(), keys.clone(), layers.clone()));
            let wanted = run(&mut Masked { queries, keys, layers });
            let furthest = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // What two correct programs may differ by in a logit, as everywhere in the golden tests.
            assert!(furthest < 2e-4, "{name}: {furthest}");
            let moved = found.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(moved > 10.0 * furthest, "{name}: the knockout does nothing");
        }
        for (queries, keys, layers) in [(0..n, n..n + 5, 0..9), (0..2, 2..n, 0..9), (0..n, 0..n, 7..7)] {
            let found = run(&mut Knockout::new(queries, keys, layers));
            assert!(found.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        }
    }
}

/// Items that the built-in model was not trained on: its answer, and what it came from.
#[test]
fn the_built_in_model_needs_the_gold_document_and_the_ledger_names_it() {
    let checkpoint = Checkpoint::open(repository("specimens/specimen")).expect("committed");
    let model = Model::open(&checkpoint, Kernels::Fast).expect("whole");
    let tokenizer = Tokenizer::open(&checkpoint).expect("it has one");
    let template = ChatTemplate::open(&checkpoint, None).expect("it has one");
    let mut session = session(&model, 512);
    let (mut right, mut only_gold_matters, mut ledger_names_gold) = (0_u32, 0_u32, 0_u32);
    for (file, system, before, after, question) in [
        ("en", "Answer from the numbered documents and cite the one you used, like [2].", "Documents:\n", "\n", "\nQuestion: "),
        ("zh", "只根据编号资料回答，并注明所用资料，如 [2]。", "资料：\n", "\n", "\n问题："),
    ] {
        let data = std::fs::read_to_string(repository(&format!("suites/data/evidence.{file}.jsonl"))).expect("committed");
        for (index, line) in data.lines().take(60).enumerate() {
            let item: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
            let mut documents: Vec<String> = item["distractors"].as_array().expect("a list").iter().take(4).map(text).collect();
            let gold = index % 5;
            documents.insert(gold, text(&item["gold"]));
            let mut pieces = vec![Piece::text(before)];
            for (place, document) in documents.iter().enumerate() {
                pieces.push(Piece::named(format!("document {}", place + 1), format!("[{}] {document}", place + 1)));
                pieces.push(Piece::text(after));
            }
            pieces.extend([Piece::text(question), Piece::named("question", text(&item["question"]))]);
            let messages = [Message::new("system", vec![Piece::text(system)]), Message::new("user", pieces)];
            let prompt = Prompt::chat(&tokenizer, &template, &messages, &RenderOptions::default()).expect("it renders");
            let spans: Vec<NamedSpan> = (1..=5)
                .map(|place| prompt.span(&format!("document {place}")).expect("named"))
                .map(|found| span(&found.name, found.tokens.clone()))
                .collect();
            let wanted = text(&item["answer"]);
            let logits = session.prompt(&model, &prompt.ids, &Workers::new(2)).expect("it fits");
            let said = tokenizer.decode(&[NextTokens::of(&logits, 1).top[0].id]);
            if said.trim().is_empty() || !wanted.starts_with(said.trim()) {
                continue; // the first token of another answer
            }
            right += 1;
            let evidence = Evidence::weigh(&model, &Workers::new(2), &mut session, &prompt.ids, &spans, None, None).expect("a sum");
            let changed: Vec<bool> = evidence.spans.iter().map(|span| span.knockout.is_some_and(|effect| effect.changed)).collect();
            only_gold_matters += u32::from(changed.iter().enumerate().all(|(place, changed)| *changed == (place == gold)));
            ledger_names_gold += u32::from(evidence.claims()[gold].ledger == Says::Yes);
        }
    }
    assert!(right >= 100, "{right} of 120");
    assert!(f64::from(only_gold_matters) >= 0.95 * f64::from(right), "{only_gold_matters} of {right}");
    assert!(f64::from(ledger_names_gold) >= 0.95 * f64::from(right), "{ledger_names_gold} of {right}");
}
