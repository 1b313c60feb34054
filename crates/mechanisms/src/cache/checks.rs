mod sequences;

use super::textbook::{PlainCache, cache_bytes, stored};
use super::*;
use glassbox_testkit::Values;

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
        cache.truncate(keep).expect("nothing was let go");
        plain.iter_mut().for_each(|plain| plain.truncate(keep));
        assert_holds(&cache, &plain);
        push(&mut cache, &mut plain, 100, keep + 1);
        assert_holds(&cache, &plain);
    }
    cache.truncate(1000).expect("nothing was let go");
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

fn planned(window: Option<usize>, kv_type: KvType, capacity: usize, pass_tokens: usize) -> CachePlan {
    let window = window.and_then(NonZeroUsize::new);
    let layers = SHAPES.iter().map(|&shape| LayerPlan { shape, window }).collect();
    CachePlan { layers, kv_type, capacity, pass_tokens }
}

#[test]
fn what_is_read_back_is_what_the_storage_type_says_bit_for_bit() {
    let mut values = Values::seeded(5);
    for kv_type in KvType::ALL {
        for shape in [1, 12, 20, 32, 33, 64, 80, 96, 128, 256].map(|d_head| LayerShape { kv_heads: 2, d_head }) {
            let width = 2 * shape.d_head;
            // Sizes from the smallest f16 to beyond the largest, zeros, and numbers half way between two of the storage.
            let size = |token: usize| f32::powi(2.0, token as i32 % 44 - 26);
            let mut row = |token: usize| -> Vec<f32> {
                let numbers = (0..width).map(|channel| (channel % 7 != 3) as u8 as f32 * size(token) * values.between(-1.0, 1.0));
                numbers.collect()
            };
            let (mut keys, values): (Vec<f32>, Vec<f32>) = ((0..90).flat_map(&mut row).collect(), (90..180).flat_map(&mut row).collect());
            keys[..width].fill(0.0);
            keys[width] = f32::NAN;
            keys[2 * width] = 1.0 + f32::powi(2.0, -11);
            let plan = CachePlan { layers: vec![LayerPlan { shape, window: None }], kv_type, capacity: 100, pass_tokens: 100 };
            let mut cache = Cache::planned(&plan, &Pool::new(1 << 20)).expect("small");
            cache.append(0, &keys, &values).expect("they fit");
            cache.poison();
            cache.append(0, &keys, &values).expect("they fit");
            let view = cache.layer(0).expect("one layer");
            for (token, kv_head) in (0..90).flat_map(|token| [(token, 0), (token, 1)]) {
                let channels = token * width + kv_head * shape.d_head..token * width + (kv_head + 1) * shape.d_head;
                for (found, given) in [(view.key(kv_head, token), &keys[channels.clone()]), (view.value(kv_head, token), &values[channels])]
                {
                    let wanted = stored(kv_type, given);
                    let same = found.iter().zip(&wanted).all(|(a, b)| f64::from(*a) == *b || a.is_nan() && b.is_nan());
                    assert!(same, "{kv_type}, d_head {}, token {token}: {given:?} is read as {found:?}, wanted {wanted:?}", shape.d_head);
                }
            }
        }
    }
}

#[test]
fn eight_bits_are_off_by_at_most_half_a_step() {
    let mut values = Values::seeded(6);
    for size in [1e-6, 1e-3, 1.0, 1e3, 1e6] {
        let row: Vec<f32> = (0..32).map(|_| values.between(-size, size)).collect();
        let largest = row.iter().fold(0.0_f64, |largest, x| largest.max(f64::from(x.abs())));
        // The scale is an f16: at most 2^-10 above max / 127, or 2^-24 where it is subnormal.
        let step = (largest / 127.0 * (1.0 + f64::powi(2.0, -10))).max(largest / 127.0 + f64::powi(2.0, -24));
        for (given, read) in row.iter().zip(stored(KvType::Q8_0, &row)) {
            assert!((f64::from(*given) - read).abs() <= step / 2.0, "{given} is read as {read}");
        }
    }
    let beyond = stored(KvType::Q8_0, &[1e8, 1.0]);
    assert!(beyond.iter().all(|x| !x.is_finite()), "a scale that is no f16 must show: {beyond:?}");
}

#[test]
fn bl_32_a_length_of_whole_pages_has_no_page_more() {
    let shape = [LayerShape { kv_heads: 1, d_head: 16 }];
    let page = Cache::bytes_for(&shape, 1).expect("a small number");
    for (tokens, pages) in [(63, 1), (64, 1), (65, 2), (128, 2), (129, 3)] {
        for pass in [1, 63, tokens] {
            let mut cache = Cache::new(&shape, 500, u64::MAX).expect("no limit");
            while cache.len() < tokens {
                let more = pass.min(tokens - cache.len());
                cache.append(0, &vec![0.5; 16 * more], &vec![0.5; 16 * more]).expect("they fit");
                cache.advance(more).expect("appended");
            }
            assert_eq!((cache.bytes(), cache.layer(0).expect("one layer").len()), (pages * page, tokens), "passes of {pass}");
        }
    }
}

/// Blocks of 32 begin anew with each head: what lies in one head changes nothing in another, at any width, and a smaller type errs more.
#[test]
fn bl_46_no_block_spans_two_heads_and_smaller_types_err_more_at_every_width() {
    let mut values = Values::seeded(7);
    for d_head in [16, 33, 64, 80, 96, 128, 256] {
        let shape = LayerShape { kv_heads: 2, d_head };
        let row = values.normals(2 * d_head, 1.0);
        let read = |kv_type: KvType, row: &[f32]| {
            let plan = CachePlan { layers: vec![LayerPlan { shape, window: None }], kv_type, capacity: 1, pass_tokens: 1 };
            let mut cache = Cache::planned(&plan, &Pool::new(1 << 20)).expect("small");
            cache.append(0, row, row).expect("one token");
            let view = cache.layer(0).expect("one layer");
            [view.key(0, 0), view.value(0, 0), view.key(1, 0), view.value(1, 0)].map(|channels| channels.to_vec())
        };
        let mut louder = row.clone();
        louder[d_head..].iter_mut().for_each(|x| *x *= 1000.0);
        let error = |kv_type: KvType| {
            let [key, value, ..] = read(kv_type, &row);
            assert_eq!(
                read(kv_type, &louder)[..2],
                [key.clone(), value.clone()],
                "{kv_type}, d_head {d_head}: the second head reaches into the first"
            );
            let distance = |found: Vec<f32>| found.iter().zip(&row).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            distance(key) + distance(value)
        };
        let [f32, f16, q8_0] = [KvType::F32, KvType::F16, KvType::Q8_0].map(error);
        assert!(f32 == 0.0 && f16 > 0.0 && q8_0 > 10.0 * f16, "d_head {d_head}: {f16:e}, {q8_0:e}");
    }
}

#[test]
fn smaller_types_take_the_bytes_that_they_say() {
    // 64 tokens, 2 heads of 12: keys 12 numbers, values 16; scales one each. And 1 head of 64: 64 and 64; two each.
    for (kv_type, wanted) in [(KvType::F32, 128 * (28 * 4) + 64 * (128 * 4)), (KvType::F16, 128 * (28 * 2) + 64 * (128 * 2))] {
        assert_eq!(planned(None, kv_type, 64, 64).bytes(), Some(wanted));
    }
    assert_eq!(planned(None, KvType::Q8_0, 64, 64).bytes(), Some(128 * (28 + 2 * 2) + 64 * (128 + 4 * 2)));
}

/// The largest number of bytes that a cache takes while passes of at most `pass` tokens fill it.
fn most_bytes(plan: &CachePlan, pass: impl Fn(usize) -> usize) -> u64 {
    let pool = Pool::new(plan.bytes().expect("a small number"));
    let mut cache = Cache::planned(plan, &pool).expect("exactly the limit");
    let mut most = 0;
    while cache.len() < plan.capacity {
        let tokens = pass(cache.len()).min(plan.capacity - cache.len());
        let (before, foretold) = (pool.bytes(), cache.bytes_to_take(tokens));
        cache.room_for(tokens).expect("the plan has room");
        for (layer, shape) in SHAPES.iter().enumerate() {
            let numbers = vec![0.5; tokens * shape.kv_heads * shape.d_head];
            cache.append(layer, &numbers, &numbers).expect("the plan has room");
        }
        assert_eq!((pool.bytes() - before, pool.bytes()), (foretold, cache.bytes()));
        most = most.max(pool.bytes());
        cache.advance(tokens).expect("appended to every layer");
    }
    drop(cache);
    assert_eq!(pool.bytes(), 0, "all pages were given back");
    most
}

#[test]
fn the_most_bytes_of_a_ring_are_foretold_exactly() {
    for window in [1, 2, 63, 64, 65, 66, 129] {
        for pass in [1, 2, 64, 65, 100] {
            let kv_type = if window == 65 { KvType::Q8_0 } else { KvType::F32 };
            let plan = planned(Some(window), kv_type, 420, pass);
            // Single tokens before the long passes bring these to every alignment.
            let most = (0..64).map(|lead| most_bytes(&plan, |len| if len < 128 + lead { 1 } else { pass })).max();
            assert_eq!(most, plan.bytes(), "window {window}, passes of {pass}");
            assert!(plan.bytes() < planned(None, kv_type, 420, pass).bytes());
        }
    }
    assert_eq!(planned(Some(2000), KvType::F32, 900, 64).bytes(), planned(None, KvType::F32, 900, 64).bytes());
}

#[test]
fn a_ring_that_cannot_go_back_says_so_and_keeps_what_it_has() {
    let mut cache = Cache::planned(&planned(Some(70), KvType::F32, 900, 900), &Pool::new(1 << 24)).expect("small");
    let mut plain = <[PlainCache; 2]>::default();
    push(&mut cache, &mut plain, 300, 0);
    // Position 300 sees 231 and later, which lie in tile 3.
    assert_eq!(cache.layer(1).expect("two layers").first(), 192);
    assert_eq!(cache.truncate(260), Err(MechanismError::LetGo { layer: 0, wanted: 191, held: 192 }));
    assert_eq!(cache.len(), 300);
    cache.truncate(261).expect("position 261 sees 192 and later");
    assert_eq!(cache.len(), 261);
    cache.clear();
    assert_eq!((cache.len(), cache.bytes(), cache.layer(0).expect("two layers").first()), (0, 0, 0));
}

#[test]
fn a_pool_that_has_no_page_left_says_how_many_bytes_are_wanted() {
    let plan = planned(None, KvType::F32, 128, 128);
    let page = planned(None, KvType::F32, 64, 64).bytes().expect("a small number");
    let pool = Pool::new(3 * page);
    let [mut a, mut b] = [(), ()].map(|()| Cache::planned(&plan, &pool).expect("two of three pages"));
    let mut plain = <[PlainCache; 2]>::default();
    push(&mut a, &mut plain, 128, 0);
    let mut other = <[PlainCache; 2]>::default();
    push(&mut b, &mut other, 64, 7);
    assert_eq!(b.room_for(1), Err(MechanismError::PoolFull { wanted: page, taken: 3 * page, limit: 3 * page }));
    assert!(b.append(0, &[0.0; 24], &[0.0; 24]).is_err());
    assert_holds(&a, &plain);
    drop(a);
    push(&mut b, &mut other, 64, 7);
    assert_holds(&b, &other);
}
