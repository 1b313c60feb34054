//! A real encoder: `make models`, then `make test-real`.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::Encoder;
use serde::Deserialize;

/// One text, as `transformers` and the recipe of sentence-transformers read it (`fixtures/real/minilm.py`).
#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f32>,
    pooled: Vec<f32>,
}

/// The mean of all tokens' vectors, divided by its length; in f64.
fn sentence_embedding(vectors: &[f32], d_model: usize) -> Vec<f64> {
    let mut sum = vec![0.0; d_model];
    for vector in vectors.chunks_exact(d_model) {
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum.iter().map(|x| x / length).collect()
}

#[test]
fn all_minilm_l6_v2_gives_the_embeddings_of_sentence_transformers() {
    let folder = PathBuf::from(std::env::var_os("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder of `make models`"));
    let checkpoint = Checkpoint::open(folder.join("all-minilm-l6-v2")).expect("the model opens");
    let encoder = Encoder::open(&checkpoint, Kernels::Fast).expect("the model is read");
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../fixtures/real/minilm.json")).expect("the fixture is valid");
    for case in &cases {
        let encoded = encoder.encode(&case.ids, None, &Workers::new(2)).expect("the ids are in the vocabulary");
        let embedding = sentence_embedding(&encoded.vectors, encoder.blueprint().d_model);
        let pooled = encoded.pooled.expect("the file has a pooler");
        let far = embedding.iter().zip(&case.embedding).map(|(found, wanted)| (found - f64::from(*wanted)).abs()).fold(0.0, f64::max);
        let far_pooled = pooled.iter().zip(&case.pooled).map(|(found, wanted)| f64::from((found - wanted).abs())).fold(0.0, f64::max);
        assert!(far <= 1e-5, "{:?}: the embedding lies {far:e} from the reference", case.text);
        assert!(far_pooled <= 1e-5, "{:?}: the pooled vector lies {far_pooled:e} from the reference", case.text);
    }
    assert_eq!(cases.len(), 6);
}
