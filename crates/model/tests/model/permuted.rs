//! Without positions and without a mask, a model cannot tell in which order its tokens came.

use glassbox_mechanisms::Workers;
use glassbox_model::Encoder;

use crate::edited::Edited;

const IDS: [u32; 12] = [1, 5, 9, 33, 2, 40, 17, 8, 5, 3, 21, 30];
const ORDER: [usize; 12] = [7, 2, 11, 0, 5, 9, 1, 10, 3, 8, 6, 4];

/// How far the vectors of the permuted text are from the permuted vectors of the text.
fn distance(encoder: &Encoder) -> f32 {
    let d_model = encoder.blueprint().d_model;
    let vectors = |ids: &[u32]| encoder.encode(ids, None, &Workers::new(1)).expect("sound ids").vectors;
    let (before, after) = (vectors(&IDS), vectors(&ORDER.map(|token| IDS[token])));
    let rows = ORDER.iter().flat_map(|token| &before[token * d_model..(token + 1) * d_model]);
    rows.zip(&after).map(|(before, after)| (before - after).abs()).fold(0.0, f32::max)
}

#[test]
fn permuting_the_tokens_permutes_the_vectors_of_an_encoder_without_positions() {
    let table = "embeddings.position_embeddings.weight";
    let edited = Edited::of("bert");
    let name = edited.tensors.keys().find(|name| name.ends_with(table)).expect("the fixture has positions").clone();
    let shape = edited.tensors[&name].0.clone();
    let without = edited.with(&name, &shape, 0.0).try_open_encoder().expect("an encoder");
    // Sums over keys are taken in another order, through every block.
    assert!(distance(&without) < 1e-5, "{}", distance(&without));
    let with = Edited::of("bert").try_open_encoder().expect("an encoder");
    assert!(distance(&with) > 0.1);
}
