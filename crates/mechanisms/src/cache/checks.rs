use super::textbook::{PlainCache, cache_bytes};
use super::*;

const SHAPES: [LayerShape; 2] = [LayerShape { kv_heads: 2, d_head: 12 }, LayerShape { kv_heads: 1, d_head: 64 }];

fn token(layer: usize, position: usize, salt: usize) -> (Vec<f32>, Vec<f32>) {
    let width = SHAPES[layer].kv_heads * SHAPES[layer].d_head;
    let number = |channel: usize, kind: usize| (position * 1000 + channel * 4 + kind * 2 + salt) as f32;
    ((0..width).map(|channel| number(channel, 0)).collect(), (0..width).map(|channel| number(channel, 1)).collect())
}

fn push(cache: &mut Cache, plain: &mut [PlainCache; 2], tokens: usize, salt: usize) {
    let first = cache.len();
    for (layer, plain) in plain.iter_mut().enumerate() {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for position in first..first + tokens {
            let (key, value) = token(layer, position, salt);
            plain.append(&key, &value);
            keys.extend(key);
            values.extend(value);
        }
        cache.append(layer, &keys, &values).expect("they fit");
    }
    cache.advance(tokens).expect("appended to every layer");
}

fn assert_holds(cache: &Cache, plain: &[PlainCache; 2]) {
    for (layer, plain) in plain.iter().enumerate() {
        let view = cache.layer(layer).expect("two layers");
        let d_head = view.shape().d_head;
        assert_eq!(view.len(), plain.keys.len());
        for position in 0..view.len() {
            for kv_head in 0..view.shape().kv_heads {
                let channels = kv_head * d_head..(kv_head + 1) * d_head;
                assert_eq!(view.key(kv_head, position), plain.keys[position][channels.clone()], "key {position}, layer {layer}");
                assert_eq!(view.value(kv_head, position), plain.values[position][channels], "value {position}, layer {layer}");
            }
        }
    }
}

#[test]
fn what_is_appended_in_any_chunks_is_read_back() {
    for chunks in [&[1; 70][..], &[64, 1, 63, 64], &[200], &[15, 1, 16, 1]] {
        let mut cache = Cache::new(&SHAPES, 300, u64::MAX).expect("no limit");
        let mut plain = <[PlainCache; 2]>::default();
        for &tokens in chunks {
            push(&mut cache, &mut plain, tokens, 0);
        }
        assert_eq!(cache.len(), chunks.iter().sum::<usize>());
        assert_holds(&cache, &plain);
    }
}

#[test]
fn after_truncating_and_appending_again_nothing_stale_is_read() {
    let mut cache = Cache::new(&SHAPES, 300, u64::MAX).expect("no limit");
    let mut plain = <[PlainCache; 2]>::default();
    push(&mut cache, &mut plain, 130, 0);
    for keep in [129, 64, 63, 17, 0] {
        cache.truncate(keep);
        plain.iter_mut().for_each(|plain| plain.truncate(keep));
        assert_holds(&cache, &plain);
        push(&mut cache, &mut plain, 100, keep + 1);
        assert_holds(&cache, &plain);
    }
    cache.truncate(1000);
    assert_holds(&cache, &plain);
}

#[test]
fn a_pass_that_ends_early_leaves_nothing_behind() {
    let mut cache = Cache::new(&SHAPES, 300, u64::MAX).expect("no limit");
    let mut plain = <[PlainCache; 2]>::default();
    push(&mut cache, &mut plain, 5, 0);
    let (key, value) = token(0, 5, 999);
    cache.append(0, &key, &value).expect("one token"); // and layer 1 never comes
    assert_eq!(cache.layer(0).expect("two layers").len(), 6);
    push(&mut cache, &mut plain, 3, 0);
    assert_holds(&cache, &plain);
}

#[test]
fn a_full_cache_says_how_full_it_is() {
    let mut cache = Cache::new(&SHAPES, 100, u64::MAX).expect("no limit");
    let mut plain = <[PlainCache; 2]>::default();
    push(&mut cache, &mut plain, 98, 0);
    assert!(cache.room_for(2).is_ok());
    let error = cache.append(1, &[0.0; 64 * 3], &[0.0; 64 * 3]).expect_err("101 of 100");
    assert_eq!(error, MechanismError::CacheFull { len: 98, capacity: 100, more: 3 });
    assert_eq!(cache.room_for(usize::MAX), Err(MechanismError::CacheFull { len: 98, capacity: 100, more: usize::MAX }));
    assert_holds(&cache, &plain);
}

#[test]
fn the_bytes_of_a_full_cache_are_foretold_exactly() {
    for capacity in [1, 63, 64, 65, 300] {
        let foretold = Cache::bytes_for(&SHAPES, capacity).expect("a small number");
        let mut cache = Cache::new(&SHAPES, capacity, foretold).expect("exactly the limit");
        assert_eq!(cache.bytes(), 0, "nothing is allocated before the first token");
        let mut plain = <[PlainCache; 2]>::default();
        for _ in 0..capacity {
            push(&mut cache, &mut plain, 1, 0);
            assert!(cache.bytes() <= foretold);
        }
        assert_eq!(cache.bytes(), foretold);
    }
}

#[test]
fn a_cache_over_the_limit_is_refused_with_both_numbers() {
    let wanted = Cache::bytes_for(&SHAPES, 640).expect("a small number");
    let error = Cache::new(&SHAPES, 640, wanted - 1).expect_err("one byte short");
    assert_eq!(error, MechanismError::CacheTooLarge { capacity: 640, wanted, limit: wanted - 1 });
    for capacity in [usize::MAX, usize::MAX / 64] {
        let error = Cache::new(&SHAPES, capacity, u64::MAX).expect_err("more than there is");
        assert!(matches!(error, MechanismError::CacheTooLarge { .. }));
    }
}

#[test]
fn cache_sizes_are_those_of_the_book() {
    assert_eq!(cache_bytes(80, 8, 128, 4096, 2), 1_342_177_280); // Llama 2 70B, f16, 8 key-value heads
    assert_eq!(cache_bytes(80, 64, 128, 4096, 2), 10_737_418_240); // were there one for each of its 64 query heads
    let layers = [LayerShape { kv_heads: 8, d_head: 128 }; 80];
    assert_eq!(Cache::bytes_for(&layers, 4096), Some(cache_bytes(80, 8, 128, 4096, 4)));
}

#[test]
fn calls_that_do_not_fit_are_refused_and_not_a_panic() {
    let mut cache = Cache::new(&SHAPES, 100, u64::MAX).expect("no limit");
    assert_eq!(cache.append(2, &[], &[]), Err(MechanismError::NoSuchLayer { layer: 2, layers: 2 }));
    assert!(matches!(cache.append(0, &[0.0; 25], &[0.0; 25]), Err(MechanismError::WrongLength { name: "k", .. })));
    assert!(matches!(cache.append(0, &[0.0; 24], &[0.0; 48]), Err(MechanismError::WrongLength { name: "v", .. })));
    cache.append(0, &[0.0; 24], &[0.0; 24]).expect("one token");
    assert_eq!(cache.advance(1), Err(MechanismError::LayerBehind { layer: 1, wanted: 1, found: 0 }));
    assert!(cache.layer(5).is_err());
    assert!(cache.is_empty());
}
