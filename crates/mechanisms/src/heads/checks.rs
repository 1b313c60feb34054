use super::textbook::{merge, parameters, split};
use super::*;
use ndarray::Array2;

fn heads(heads: usize, kv_heads: usize, d_head: usize) -> Heads {
    Heads::new(heads, kv_heads, d_head).expect("a shape that divides")
}

#[test]
fn consecutive_query_heads_share_a_key_value_head() {
    let shape = heads(4, 2, 8);
    assert_eq!([0, 1, 2, 3].map(|head| shape.kv_head_of(head)), [0, 0, 1, 1]);
    assert_eq!(shape.readers_of(1), 2..4);
    for (many, few) in [(8, 8), (8, 2), (8, 1), (14, 2)] {
        let shape = heads(many, few, 4);
        for kv_head in 0..few {
            assert!(shape.readers_of(kv_head).all(|head| shape.kv_head_of(head) == kv_head));
        }
    }
}

#[test]
fn heads_that_do_not_divide_are_refused_with_their_numbers() {
    for (many, few, d_head) in [(6, 4, 8), (0, 1, 8), (4, 0, 8), (4, 4, 0), (2, 4, 8), (usize::MAX, 1, 2)] {
        let error = Heads::new(many, few, d_head).expect_err("these cannot be shared").to_string();
        assert!(error.contains(&many.to_string()) && error.contains(&few.to_string()), "{error}");
    }
}

#[test]
fn splitting_and_merging_heads_gives_back_the_tokens() {
    let x = Array2::from_shape_fn((3, 8), |(token, column)| (token * 8 + column) as f64);
    let parts = split(&x, 4);
    assert_eq!(parts.dim(), (2, 3, 4));
    assert_eq!(parts[[1, 2, 0]], 20.0);
    assert_eq!(merge(&parts), x);
}

#[test]
fn parameter_counts_are_those_of_the_book() {
    assert_eq!(parameters(&heads(8, 8, 64), 512), 1_048_576);
    assert_eq!(parameters(&heads(16, 16, 128), 2048), 16_777_216);
    let (mha, gqa, mqa) = (heads(32, 32, 128), heads(32, 8, 128), heads(32, 1, 128));
    assert_eq!(mha.kv_width() / gqa.kv_width(), 4);
    assert_eq!(mha.kv_width() / mqa.kv_width(), 32);
}
