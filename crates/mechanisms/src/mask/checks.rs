use super::textbook::{apply, matrix};
use super::*;

fn rules() -> Vec<KeyRange> {
    let mut rules = Vec::new();
    for causal in [true, false] {
        for window in [0, 1, 2, 4, 9, 10, 11, 1000] {
            rules.push(KeyRange { causal, window: NonZeroUsize::new(window) });
        }
    }
    rules
}

#[test]
fn ranges_hold_exactly_the_keys_that_the_matrix_shows() {
    for rule in rules() {
        let matrix = matrix(&rule, 10, 10);
        for query in 0..10 {
            let range = rule.keys(query, 10);
            for key in 0..10 {
                assert_eq!(range.contains(&key), matrix[[query, key]] == 0.0, "{rule:?}: query {query}, key {key}");
            }
        }
    }
}

#[test]
fn a_window_of_four_shows_four_keys_with_the_querys_own() {
    let rule = KeyRange::causal_window(4);
    assert_eq!(rule.keys(9, 10), 6..10);
    assert_eq!(rule.keys(3, 10), 0..4);
    assert_eq!(rule.keys(0, 10), 0..1);
}

#[test]
fn a_window_of_zero_is_full_attention_and_never_an_empty_row() {
    assert_eq!(KeyRange::causal_window(0), KeyRange::causal());
    for rule in rules() {
        for query in 0..10 {
            assert!(rule.keys(query, 10).contains(&query));
        }
    }
}

#[test]
fn no_key_beyond_the_stored_ones_is_seen() {
    assert_eq!(KeyRange::everything().keys(3, 5), 0..5);
    assert_eq!(KeyRange::causal().keys(7, 5), 0..5);
    assert!(KeyRange::causal_window(2).keys(9, 5).is_empty());
    assert!(KeyRange::causal().keys(usize::MAX, 0).is_empty());
}

#[test]
fn masked_scores_are_minus_infinity_whatever_they_were() {
    let mut scores = ndarray::array![[-20_000.0, 1e30], [0.0, 0.0]];
    apply(&mut scores, &matrix(&KeyRange::causal(), 2, 2));
    assert_eq!(scores, ndarray::array![[-20_000.0, f64::NEG_INFINITY], [0.0, 0.0]]);
}
