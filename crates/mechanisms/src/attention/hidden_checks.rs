//! Keys that an edit hides from some queries.

use super::statistics_checks::Case;
use super::*;

const TOKENS: usize = 700;

/// How far what is mixed may lie from the textbook: a score is off by up to `(d_head + 3) ε / 2 Σ|q k| scale`, which moves a weight by twice that share of
/// itself, and so the mean of values of at most 2 by twice that times 2; the sums add some ε of themselves (`statistics_checks.rs`).
fn most_off(d_head: usize) -> f32 {
    let d_head = d_head as f32;
    let score = (d_head + 3.0) * f32::EPSILON / 2.0 * 4.0 * d_head.sqrt();
    4.0 * score + 2.0 * 64.0 * f32::EPSILON
}

fn case(heads: (usize, usize, usize), keys: KeyRange, hidden: Option<Hidden>) -> Case {
    Case { hidden, ..Case::new(heads, TOKENS, keys) }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The rows of some tokens.
fn of(values: &[f32], tokens: Range<usize>) -> Vec<u32> {
    let width = values.len() / TOKENS;
    bits(&values[tokens.start * width..tokens.end * width])
}

#[test]
fn hidden_keys_are_those_of_the_textbook_where_borders_lie_in_at_and_across_tiles() {
    let all = 0..usize::MAX;
    for (queries, keys) in [
        (100..700, 30..100),
        (all.clone(), 64..128),
        (all.clone(), 63..65),
        (200..650, 100..600),
        (513..514, 0..1),
        (all.clone(), 0..512),
        (all.clone(), 0..700),
        (600..700, 500..9_000),
    ] {
        let hidden = Hidden { queries, keys };
        for (heads, rule) in
            [((4, 2, 8), KeyRange::causal()), ((2, 2, 16), KeyRange::causal_window(150)), ((4, 1, 8), KeyRange::everything())]
        {
            let case = case(heads, rule, Some(hidden.clone()));
            case.check();
            let ((_, found), (_, truth)) = (case.run(Kernels::Fast, 2), case.run(Kernels::Textbook, 1));
            let furthest = found.iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(furthest < most_off(heads.2) && found.iter().all(|value| value.is_finite()), "{hidden:?}, {rule:?}: {furthest}");
        }
    }
}

#[test]
fn an_edit_that_hides_nothing_changes_no_bit_and_one_that_hides_something_changes_only_its_queries() {
    let (_, plain) = case((4, 2, 8), KeyRange::causal(), None).run(Kernels::Fast, 2);
    let run = |queries, keys| case((4, 2, 8), KeyRange::causal(), Some(Hidden { queries, keys })).run(Kernels::Fast, 2).1;
    // Later keys than the queries see, no keys, no queries.
    for (queries, keys) in [(0..300, 300..700), (0..TOKENS, 90..90), (700..900, 0..700)] {
        assert_eq!(bits(&run(queries.clone(), keys.clone())), bits(&plain), "{queries:?} {keys:?}");
    }
    let edited = run(150..160, 100..140);
    assert_eq!(of(&edited, 0..150), of(&plain, 0..150));
    assert_eq!(of(&edited, 160..TOKENS), of(&plain, 160..TOKENS));
    for token in 150..160 {
        assert_ne!(of(&edited, token..token + 1), of(&plain, token..token + 1), "token {token}");
    }
}

#[test]
fn a_query_from_which_everything_is_hidden_gives_zeros() {
    let (_, out) = case((4, 2, 8), KeyRange::causal(), Some(Hidden { queries: 5..9, keys: 0..TOKENS })).run(Kernels::Fast, 1);
    assert!(of(&out, 5..9).iter().all(|bits| *bits == 0));
}

#[test]
fn hidden_keys_have_the_same_bits_whatever_the_kernel_the_threads_and_the_pass() {
    let hidden = Hidden { queries: 300..TOKENS, keys: 120..270 };
    let whole = case((4, 2, 8), KeyRange::causal(), Some(hidden));
    let (_, out) = whole.run(Kernels::Fast, 1);
    for (kernels, threads) in [(Kernels::Fast, 3), (Kernels::Portable, 2)] {
        assert_eq!(bits(&whole.run(kernels, threads).1), bits(&out));
    }
    for rows in [1, 7, 400] {
        let (_, last) = Case { rows, ..whole.clone() }.run(Kernels::Fast, 2);
        assert_eq!(bits(&last), of(&out, TOKENS - rows..TOKENS), "{rows} rows");
    }
}

/// A fault: the first hidden key is seen.
#[test]
fn a_border_that_is_off_by_one_is_caught() {
    let hidden = |keys| Some(Hidden { queries: 300..TOKENS, keys });
    let (_, truth) = case((4, 2, 8), KeyRange::causal(), hidden(120..270)).run(Kernels::Textbook, 1);
    let (_, wrong) = case((4, 2, 8), KeyRange::causal(), hidden(121..270)).run(Kernels::Fast, 1);
    let furthest = wrong.iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(furthest > 100.0 * most_off(8), "{furthest}");
}
