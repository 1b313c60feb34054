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
        let matrix = matrix(&rule, None, 0, 10, 10);
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
    let mut scores = ndarray::array![[-20_000.0, f64::NAN], [0.0, 0.0]];
    apply(&mut scores, &matrix(&KeyRange::causal(), None, 0, 2, 2));
    assert_eq!(scores, ndarray::array![[-20_000.0, f64::NEG_INFINITY], [0.0, 0.0]]);
}

fn text(positions: Range<usize>, prefix: usize) -> Text {
    Text { positions, prefix }
}

/// Padding on the left, on the right, between and nowhere; prefixes of none, some, all and more than all tokens.
fn packings() -> Vec<Vec<Text>> {
    let mut packings = vec![Vec::new()];
    for prefix in [0, 1, 3, 100] {
        packings.push(vec![text(0..10, prefix)]);
        packings.push(vec![text(3..10, prefix)]);
        packings.push(vec![text(0..6, prefix)]);
        packings.push(vec![text(0..4, prefix), text(4..9, 0), text(9..10, prefix)]);
        packings.push(vec![text(1..2, 0), text(3..8, prefix)]);
    }
    packings
}

#[test]
fn every_combination_of_causal_window_padding_packing_and_prefix_is_one_range_of_keys() {
    for rule in rules() {
        for texts in packings() {
            let matrix = matrix(&rule, Some(&texts), 0, 10, 10);
            for query in 0..10 {
                let range = rule.keys_among(&texts, query, 10);
                for key in 0..10 {
                    assert_eq!(range.contains(&key), matrix[[query, key]] == 0.0, "{rule:?}, {texts:?}: query {query}, key {key}");
                }
            }
        }
    }
}

#[test]
fn one_text_over_all_positions_changes_nothing() {
    for rule in rules() {
        for query in 0..10 {
            assert_eq!(rule.keys_among(&[text(0..10, 0)], query, 10), rule.keys(query, 10));
        }
    }
}

#[test]
fn packed_texts_do_not_see_one_another_and_padding_sees_nothing() {
    let texts = [text(0..3, 0), text(3..5, 0), text(6..9, 0)];
    let seen: Vec<Range<usize>> = (0..10).map(|query| KeyRange::causal().keys_among(&texts, query, 10)).collect();
    assert_eq!(seen, [0..1, 0..2, 0..3, 3..4, 3..5, 0..0, 6..7, 6..8, 6..9, 0..0]);
}

#[test]
fn tokens_of_a_prefix_see_one_another_and_no_token_behind_it() {
    let seen: Vec<Range<usize>> = (2..8).map(|query| KeyRange::causal().keys_among(&[text(2..8, 3)], query, 8)).collect();
    assert_eq!(seen, [2..5, 2..5, 2..5, 2..6, 2..7, 2..8]);
    assert_eq!(KeyRange::causal_window(2).keys_among(&[text(2..8, 3)], 2, 8), 2..4, "a window bounds a prefix too");
    assert_eq!(KeyRange::causal().keys_among(&[text(2..8, usize::MAX)], 3, 8), 2..8);
}

/// Planted bugs: a border that belongs to both texts, a prefix that later tokens may look into the future from.
#[test]
fn wrong_borders_show_in_the_matrix() {
    let (rule, texts) = (KeyRange::causal(), [text(0..4, 2), text(4..9, 0)]);
    let right = matrix(&rule, Some(&texts), 0, 9, 9);
    let leaking = matrix(&rule, Some(&[text(0..5, 2), text(4..9, 0)]), 0, 9, 9);
    let everywhere = matrix(&KeyRange::everything(), Some(&texts), 0, 9, 9);
    assert!(leaking != right && everywhere != right);
    assert!(
        (right[[4, 3]], leaking[[4, 3]]) == (f64::NEG_INFINITY, 0.0) && (right[[2, 3]], everywhere[[2, 3]]) == (f64::NEG_INFINITY, 0.0)
    );
}
