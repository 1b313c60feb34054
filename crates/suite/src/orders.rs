//! Orders of blocks in which every block comes to every place, and after every other block, equally often.

use glassbox_stats::random::{Dice, seed_from};

/// An order and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedOrder {
    pub(crate) name: String,
    /// `order[place]` is the block's number, both from 0.
    pub(crate) order: Vec<usize>,
}

/// Chooses orders for one item: identity, reverse, then rows of a Williams design.
///
/// - `blocks`  K, at least 2
/// - `count`   how many orders, from 2 to K!
/// - `rank`    of the item; items take turns with the rows, so that over items the rows are used evenly
/// - `seed`    of the test; only beyond the first square, where blocks are relabelled at random
pub(crate) fn choose(blocks: usize, count: usize, rank: usize, seed: u64) -> Vec<NamedOrder> {
    let identity: Vec<usize> = (0..blocks).collect();
    let reverse: Vec<usize> = (0..blocks).rev().collect();
    let mut chosen = vec![identity.clone()];
    let rows = williams(blocks);
    let mut labels = identity;
    let mut candidates: Vec<Vec<usize>> = vec![reverse];
    let first = rank.wrapping_mul(count.saturating_sub(2)) % rows.len();
    let mut square: u64 = 0;
    while chosen.len() < count {
        for order in candidates.drain(..) {
            if chosen.len() < count && !chosen.contains(&order) {
                chosen.push(order);
            }
        }
        candidates.extend((0..rows.len()).map(|row| rows[(first + row) % rows.len()].iter().map(|block| labels[*block]).collect()));
        square += 1;
        Dice::new(seed_from(&["labels", &seed.to_string(), &square.to_string()])).shuffle(&mut labels);
    }
    let name = |index: usize, order: &[usize]| match index {
        0 => "identity".to_owned(),
        1 => "reverse".to_owned(),
        _ => format!("order {}", order.iter().map(|block| (block + 1).to_string()).collect::<Vec<_>>().join("-")),
    };
    chosen.into_iter().enumerate().map(|(index, order)| NamedOrder { name: name(index, &order), order }).collect()
}

/// The rows of a Williams design: K rows for even K, 2K for odd K.
///
/// With the first row 0, 1, K-1, 2, K-2, … and every further row one higher modulo K, each block stands at each place equally often, and
/// each block follows each other block equally often. For odd K that needs the mirrored rows too.
///
/// Source: Williams 1949, Experimental designs balanced for the estimation of residual effects of treatments.
fn williams(blocks: usize) -> Vec<Vec<usize>> {
    let first: Vec<usize> =
        (0..blocks).map(|place| if place % 2 == 1 { place.div_ceil(2) } else { (blocks - place / 2) % blocks }).collect();
    let mut rows: Vec<Vec<usize>> = (0..blocks).map(|shift| first.iter().map(|block| (block + shift) % blocks).collect()).collect();
    if blocks % 2 == 1 {
        let mirrored: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_block_stands_at_every_place_and_after_every_other_equally_often() {
        for blocks in 2..9 {
            let rows = williams(blocks);
            let mut at_place: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            let mut after: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for row in &rows {
                for (place, block) in row.iter().enumerate() {
                    *at_place.entry((place, *block)).or_default() += 1;
                }
                for pair in row.windows(2) {
                    *after.entry((pair[0], pair[1])).or_default() += 1;
                }
            }
            assert_eq!(at_place.len(), blocks * blocks, "{blocks} blocks");
            assert_eq!(after.len(), blocks * (blocks - 1), "{blocks} blocks");
            assert!(at_place.values().all(|count| *count == rows.len() / blocks), "{blocks} blocks: {at_place:?}");
            let first = after.values().next();
            assert!(after.values().all(|count| Some(count) == first), "{blocks} blocks: {after:?}");
        }
    }

    #[test]
    fn chosen_orders_are_different_and_begin_with_identity_and_reverse() {
        for (blocks, count) in [(2, 2), (3, 6), (4, 6), (4, 24), (5, 12)] {
            for rank in 0..7 {
                let chosen = choose(blocks, count, rank, 9);
                assert_eq!(chosen.len(), count);
                assert_eq!(chosen[0].order, (0..blocks).collect::<Vec<_>>());
                assert_eq!(chosen[1].order, (0..blocks).rev().collect::<Vec<_>>());
                let distinct: std::collections::BTreeSet<_> = chosen.iter().map(|order| &order.order).collect();
                assert_eq!(distinct.len(), count, "{blocks} blocks, rank {rank}");
            }
        }
    }
}
