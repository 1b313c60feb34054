//! Growing, forked and ring sequences, step by step beside lists of numbers; and page tables with planted faults, which must differ.

use super::*;

/// What the steps need of a cache: one layer, one head, one channel.
trait Sequence: Sized {
    fn empty(window: Option<usize>) -> Self;
    fn push(&mut self, values: &[f32]);
    fn fork(&self) -> Self;
    /// Whether it was possible.
    fn truncate(&mut self, len: usize) -> bool;
    fn first(&self) -> usize;
    fn read(&self, position: usize) -> f32;
}

impl Sequence for Cache {
    fn empty(window: Option<usize>) -> Self {
        let window = window.and_then(NonZeroUsize::new);
        let layers = vec![LayerPlan { shape: LayerShape { kv_heads: 1, d_head: 1 }, window }];
        let plan = CachePlan { layers, kv_type: KvType::F32, capacity: 10_000, pass_tokens: 200 };
        Cache::planned(&plan, &Pool::new(1 << 28)).expect("small")
    }

    fn push(&mut self, values: &[f32]) {
        let keys: Vec<f32> = values.iter().map(|value| -value).collect();
        self.append(0, &keys, values).expect("they fit");
        self.advance(values.len()).expect("appended");
    }

    fn fork(&self) -> Self {
        Cache::fork(self)
    }

    fn truncate(&mut self, len: usize) -> bool {
        Cache::truncate(self, len).is_ok()
    }

    fn first(&self) -> usize {
        self.layer(0).expect("one layer").first()
    }

    fn read(&self, position: usize) -> f32 {
        let view = self.layer(0).expect("one layer");
        let value = view.value(0, position)[0];
        assert_eq!(view.key(0, position)[0], -value);
        value
    }
}

/// A page table in miniature, right or wrong. Pages lie in one place, and tables hold their numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Reads the page after the one of the tile.
    WrongPage,
    /// Writes into a page that another sequence reads.
    NoCopy,
    /// Copies a shared page and goes on reading the old one.
    StalePage,
    /// Takes a new page instead of a copy, and loses what the old one held.
    EmptyCopy,
    /// Lets go of a tile one token early.
    RingOneEarly,
    /// Keeps `window + 1` keys.
    WindowAndOne,
}

const FAULTS: [Fault; 6] = [Fault::WrongPage, Fault::NoCopy, Fault::StalePage, Fault::EmptyCopy, Fault::RingOneEarly, Fault::WindowAndOne];

type Pages = std::rc::Rc<std::cell::RefCell<Vec<([f32; TILE], usize)>>>;

struct Miniature<const FAULT: usize> {
    pages: Pages,
    table: Vec<usize>,
    first_tile: usize,
    len: usize,
    window: Option<usize>,
}

impl<const FAULT: usize> Miniature<FAULT> {
    fn fault() -> Fault {
        if FAULT == 0 { Fault::None } else { FAULTS[FAULT - 1] }
    }

    fn first_seen(&self, query: usize) -> usize {
        self.window.map_or(0, |window| (query + 1).saturating_sub(window))
    }

    fn give_back(&mut self, range: std::ops::Range<usize>) {
        for page in self.table.drain(range) {
            self.pages.borrow_mut()[page].1 -= 1;
        }
    }
}

impl<const FAULT: usize> Sequence for Miniature<FAULT> {
    fn empty(window: Option<usize>) -> Self {
        Self { pages: Pages::default(), table: Vec::new(), first_tile: 0, len: 0, window }
    }

    fn push(&mut self, values: &[f32]) {
        for &value in values {
            let index = (self.len / TILE).saturating_sub(self.first_tile);
            let mut pages = self.pages.borrow_mut();
            if index == self.table.len() {
                pages.push(([f32::NAN; TILE], 1));
                self.table.push(pages.len() - 1);
            }
            let (mut page, shared) = (self.table[index], pages[self.table[index]].1 > 1);
            if shared && Self::fault() != Fault::NoCopy {
                let numbers = if Self::fault() == Fault::EmptyCopy { [f32::NAN; TILE] } else { pages[page].0 };
                pages[page].1 -= 1;
                pages.push((numbers, 1));
                page = pages.len() - 1;
                if Self::fault() != Fault::StalePage {
                    self.table[index] = page;
                }
            }
            pages[page].0[self.len % TILE] = value;
            self.len += 1;
        }
        let early = usize::from(Self::fault() == Fault::RingOneEarly && self.window.is_some());
        let late = usize::from(Self::fault() == Fault::WindowAndOne);
        let tile = (self.first_seen(self.len) + early).saturating_sub(late) / TILE;
        let gone = tile.saturating_sub(self.first_tile).min(self.table.len());
        self.give_back(0..gone);
        self.first_tile += gone;
    }

    fn fork(&self) -> Self {
        self.table.iter().for_each(|page| self.pages.borrow_mut()[*page].1 += 1);
        Self { pages: self.pages.clone(), table: self.table.clone(), ..*self }
    }

    fn truncate(&mut self, len: usize) -> bool {
        if len > 0 && self.first_seen(len) < self.first_tile * TILE {
            return false;
        }
        let kept = len.div_ceil(TILE).saturating_sub(self.first_tile);
        self.give_back(kept.min(self.table.len())..self.table.len());
        self.len = len;
        self.first_tile = if len == 0 { 0 } else { self.first_tile };
        true
    }

    fn first(&self) -> usize {
        self.first_tile * TILE
    }

    fn read(&self, position: usize) -> f32 {
        let wrong = usize::from(Self::fault() == Fault::WrongPage);
        let page = (position / TILE).checked_sub(self.first_tile).and_then(|index| self.table.get(index + wrong));
        page.map_or(f32::NAN, |page| self.pages.borrow()[*page].0[position % TILE])
    }
}

/// Two sequences and their forks take random steps beside plain lists. Gives the first difference.
fn difference<S: Sequence>(window: Option<usize>, seed: u64) -> Option<String> {
    let mut random = Values::seeded(seed);
    let mut sequences: Vec<(S, Vec<f32>)> = vec![(S::empty(window), Vec::new())];
    let first_seen = |query: usize| window.map_or(0, |window| (query + 1).saturating_sub(window));
    for step in 0..120 {
        let at = random.below(sequences.len());
        let count = sequences.len();
        let (sequence, list) = &mut sequences[at];
        match random.below(5) {
            0 if count < 6 => {
                let fork = (sequence.fork(), list.clone());
                sequences.push(fork);
            }
            1 if count > 2 => drop(sequences.swap_remove(at)),
            2 => {
                let len = random.below(list.len() + 1).max(list.len().saturating_sub(random.below(90)));
                let held = len == 0 || first_seen(len) >= sequence.first();
                if sequence.truncate(len) != held {
                    return Some(format!("step {step}: going back to {len} should be {held}"));
                }
                if held {
                    list.truncate(len);
                }
            }
            _ => {
                let tokens = [1, 2, 30, 63, 64, 65, 200][random.below(7)];
                let values: Vec<f32> = (0..tokens).map(|token| (step * 1000 + token) as f32).collect();
                sequence.push(&values);
                list.extend(values);
                if !list.is_empty() && sequence.first() < first_seen(list.len()) / TILE * TILE {
                    return Some(format!("step {step}: keeps position {}, which nobody will see", sequence.first()));
                }
            }
        }
        for (sequence, list) in &sequences {
            for position in first_seen(list.len())..list.len() {
                if position < sequence.first() || sequence.read(position) != list[position] {
                    return Some(format!("step {step}: position {position} of {}", list.len()));
                }
            }
        }
    }
    None
}

fn first_difference<S: Sequence>() -> Option<String> {
    let windows = [None, Some(1), Some(2), Some(64), Some(65), Some(100)];
    windows
        .into_iter()
        .flat_map(|window| (0..8).map(move |seed| (window, seed)))
        .find_map(|(window, seed)| difference::<S>(window, seed).map(|found| format!("window {window:?}, seed {seed}, {found}")))
}

#[test]
fn forks_rings_and_their_pages_hold_what_plain_lists_hold() {
    assert_eq!(first_difference::<Cache>(), None);
}

#[test]
fn planted_faults_of_a_page_table_are_caught() {
    assert_eq!(first_difference::<Miniature<0>>(), None, "the miniature without a fault is right");
    let caught = [
        first_difference::<Miniature<1>>(),
        first_difference::<Miniature<2>>(),
        first_difference::<Miniature<3>>(),
        first_difference::<Miniature<4>>(),
        first_difference::<Miniature<5>>(),
        first_difference::<Miniature<6>>(),
    ];
    for (fault, caught) in FAULTS.iter().zip(caught) {
        assert!(caught.is_some(), "{fault:?} was not caught");
    }
}

#[test]
fn a_fork_shares_full_pages_and_copies_only_the_page_that_is_written() {
    let plan = planned(None, KvType::F16, 300, 300);
    let page = planned(None, KvType::F16, 64, 64).bytes().expect("a small number");
    let pool = Pool::new(1 << 24);
    let mut cache = Cache::planned(&plan, &pool).expect("small");
    push_half(&mut cache, 130);
    assert_eq!(pool.bytes(), 3 * page);
    let mut fork = cache.fork();
    assert_eq!((pool.bytes(), fork.bytes()), (3 * page, 3 * page), "nothing is copied yet");
    assert_eq!((fork.bytes_to_take(1), fork.bytes_to_take(63)), (page, 2 * page));
    push_half(&mut fork, 1);
    assert_eq!(pool.bytes(), 4 * page, "the page of the tail was copied");
    push_half(&mut cache, 1);
    assert_eq!(pool.bytes(), 4 * page, "the other is alone with its own now");
    fork.truncate(64).expect("nothing was let go");
    assert_eq!(pool.bytes(), 3 * page);
    drop(cache);
    assert_eq!(pool.bytes(), page, "one page of 64 tokens is left, and the fork holds it");
    for _ in 0..1000 {
        let mut fork = fork.fork();
        push_half(&mut fork, 5);
    }
    assert_eq!(pool.bytes(), page);
}

fn push_half(cache: &mut Cache, tokens: usize) {
    for (layer, shape) in SHAPES.iter().enumerate() {
        let numbers = vec![0.5; tokens * shape.kv_heads * shape.d_head];
        cache.append(layer, &numbers, &numbers).expect("they fit");
    }
    cache.advance(tokens).expect("appended to every layer");
}
