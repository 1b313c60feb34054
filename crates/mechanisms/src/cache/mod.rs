//! The cache: keys and values of the tokens seen, so that a new token needs only its own.
//!
//! - [`Cache`]: one sequence; grows, forks, and where its plan says so forgets what no query sees any more
//! - [`CachePlan`]: what a cache is to hold, and its bytes, known before the first token
//! - [`Pool`]: the memory that caches share
//! - [`LayerView`]: the only door for readers

mod blocks;
mod page;
mod plan;
mod pool;
mod table;
pub mod textbook;
mod view;

#[cfg(test)]
mod checks;

use std::num::NonZeroUsize;

pub use plan::{CachePlan, KvType, LayerPlan};
pub use pool::Pool;
pub use view::LayerView;

use crate::MechanismError;
use page::Page;
use table::Table;

/// Tokens of a tile, and of a page: a softmax step takes 64 scores of a row at a time (eight registers of eight), and 64 keys and values of
/// 64 channels are 32 KiB, what a first-level cache holds.
pub const TILE: usize = 64;

/// Sixteen numbers that start a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Line(pub [f32; LANES]);

/// Numbers of a line.
pub(crate) const LANES: usize = 16;

/// Panels of 16 channels that hold a value.
pub(crate) fn value_panels(d_head: usize) -> usize {
    d_head.div_ceil(LANES)
}

/// What a layer stores for a token: `kv_heads` keys and as many values of `d_head` numbers each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Key-value heads.
    pub kv_heads: usize,
    /// Width of one.
    pub d_head: usize,
}

/// Keys and values of one sequence, layer by layer, in pages of 64 tokens.
///
/// Memory grows with the text, up to `capacity`; what the full cache takes is known and checked before the first token. A pass appends
/// its tokens to every layer and then calls [`Cache::advance`]; a pass that ends early leaves nothing behind, because the next one
/// appends at the same place.
///
/// A fork shares the pages of what it was forked from; each of the two copies a shared page when it writes into it.
#[derive(Debug)]
pub struct Cache {
    capacity: usize,
    len: usize,
    kv_type: KvType,
    pool: Pool,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    shape: LayerShape,
    window: Option<NonZeroUsize>,
    /// Most pages that it ever holds.
    most_pages: usize,
    /// Tokens appended, counted in or not.
    stored: usize,
    table: Table,
}

impl Cache {
    /// An empty cache for at most `capacity` tokens that keeps everything as `f32`, with memory of its own.
    ///
    /// # Errors
    ///
    /// Where the full cache would take more than `limit_bytes`: both numbers are in the message, and nothing was allocated.
    pub fn new(layers: &[LayerShape], capacity: usize, limit_bytes: u64) -> Result<Self, MechanismError> {
        Self::planned(&CachePlan::growing(layers, capacity), &Pool::new(limit_bytes))
    }

    /// An empty cache that takes its memory from `pool`.
    ///
    /// # Errors
    ///
    /// Where the full cache would take more than the whole pool: both numbers are in the message, and nothing was allocated.
    pub fn planned(plan: &CachePlan, pool: &Pool) -> Result<Self, MechanismError> {
        let (capacity, wanted, limit) = (plan.capacity, plan.bytes(), pool.limit());
        if wanted.is_none_or(|bytes| bytes > limit) {
            return Err(MechanismError::CacheTooLarge { capacity, wanted: wanted.unwrap_or(u64::MAX), limit });
        }
        let empty = |layer: &LayerPlan| Layer {
            shape: layer.shape,
            window: layer.window,
            most_pages: plan.pages_of(layer),
            stored: 0,
            table: Table::default(),
        };
        let layers = plan.layers.iter().map(empty).collect();
        Ok(Self { capacity, len: 0, kv_type: plan.kv_type, pool: pool.clone(), layers })
    }

    /// Bytes that a full cache of `capacity` tokens takes, which keeps everything as `f32`; see [`CachePlan::bytes`].
    #[must_use]
    pub fn bytes_for(layers: &[LayerShape], capacity: usize) -> Option<u64> {
        CachePlan::growing(layers, capacity).bytes()
    }

    /// Another cache that holds the same tokens. Nothing is copied: both read the same pages, and each copies what it changes.
    ///
    /// Tokens that are not counted in stay behind.
    #[must_use]
    pub fn fork(&self) -> Self {
        let share = |layer: &Layer| Layer { stored: self.len, table: layer.table.share(self.len), ..*layer };
        let layers = self.layers.iter().map(share).collect();
        Self { capacity: self.capacity, len: self.len, kv_type: self.kv_type, pool: self.pool.clone(), layers }
    }

    /// Bytes of the pages that it reads, shared ones included. What all caches of a pool take together is [`Pool::bytes`].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.table.bytes()).sum()
    }

    /// Bytes that `tokens` more will take from the pool: new pages, and copies of shared ones. Rings let go of pages between passes, so for more
    /// than one pass of theirs this is the most that they can take.
    #[must_use]
    pub fn bytes_to_take(&self, tokens: usize) -> u64 {
        let end = self.len.saturating_add(tokens).min(self.capacity);
        let of_layer = |layer: &Layer| {
            let page = Page::bytes_of(layer.shape, self.kv_type).expect("the plan of this cache fits");
            (layer.table.pages_to_take(self.len, end, layer.most_pages) * page) as u64
        };
        self.layers.iter().map(of_layer).sum()
    }

    /// The memory from which it takes its pages.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// How keys and values are stored.
    #[must_use]
    pub fn kv_type(&self) -> KvType {
        self.kv_type
    }

    /// Tokens counted in.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is counted in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tokens it may hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether `tokens` more would fit, into the cache and into its pool.
    ///
    /// # Errors
    ///
    /// Where they would not, with the numbers. A pass asks this before it begins.
    pub fn room_for(&self, tokens: usize) -> Result<(), MechanismError> {
        match self.len.checked_add(tokens) {
            Some(end) if end <= self.capacity => self.pool.room_for(self.bytes_to_take(tokens)),
            _ => Err(MechanismError::CacheFull { len: self.len, capacity: self.capacity, more: tokens }),
        }
    }

    /// Stores keys and values of the tokens that follow position `len()` in one layer, rotated keys as attention meets them.
    ///
    /// - `k`, `v`  `[token, kv_head, d_head]`
    ///
    /// # Errors
    ///
    /// Where the layer does not exist, the values are not whole tokens, they do not fit, or pool or system give no memory.
    pub fn append(&mut self, layer: usize, k: &[f32], v: &[f32]) -> Result<(), MechanismError> {
        let layers = self.layers.len();
        let Some(Layer { shape, stored, table, .. }) = self.layers.get_mut(layer) else {
            return Err(MechanismError::NoSuchLayer { layer, layers });
        };
        let shape = *shape;
        let width = shape.kv_heads * shape.d_head;
        let tokens = k.len() / width.max(1);
        for (name, values) in [("k", k), ("v", v)] {
            let (wanted, found) = (tokens * width, values.len());
            if found != wanted {
                return Err(MechanismError::WrongLength { name, axes: "token x kv_head x d_head", wanted, found });
            }
        }
        let first = self.len;
        let Some(end) = first.checked_add(tokens).filter(|end| *end <= self.capacity) else {
            return Err(MechanismError::CacheFull { len: first, capacity: self.capacity, more: tokens });
        };
        for tile in first / TILE..end.div_ceil(TILE) {
            table.own(tile, first, || Page::new(shape, self.kv_type, &self.pool))?;
            let page = table.page_mut(tile);
            for position in (tile * TILE).max(first)..((tile + 1) * TILE).min(end) {
                for kv_head in 0..shape.kv_heads {
                    let at = (position - first) * width + kv_head * shape.d_head;
                    page.write(kv_head, position % TILE, &k[at..at + shape.d_head], &v[at..at + shape.d_head]);
                }
            }
        }
        *stored = end;
        Ok(())
    }

    /// Counts in `tokens` that were appended to every layer. Rings let go of what no later query sees.
    ///
    /// # Errors
    ///
    /// Where a layer does not hold them, with its number.
    pub fn advance(&mut self, tokens: usize) -> Result<(), MechanismError> {
        let wanted = self.len.saturating_add(tokens);
        for (layer, Layer { stored, .. }) in self.layers.iter().enumerate() {
            if *stored != wanted {
                return Err(MechanismError::LayerBehind { layer, wanted, found: *stored });
            }
        }
        self.len = wanted;
        for layer in &mut self.layers {
            layer.table.let_go_before(first_seen(wanted, layer.window));
        }
        Ok(())
    }

    /// Forgets all but the first `len` tokens, and gives back their pages. Does nothing where there are no more.
    ///
    /// What was forgotten is never read again: views end where the appended tokens end.
    ///
    /// # Errors
    ///
    /// Where a ring has let go of keys that the token at position `len` would see; nothing is forgotten then. An empty cache (`len` of 0) is
    /// always possible.
    pub fn truncate(&mut self, len: usize) -> Result<(), MechanismError> {
        let len = self.len.min(len);
        for (layer, Layer { window, table, .. }) in self.layers.iter().enumerate() {
            let (wanted, held) = (first_seen(len, *window), table.first_tile() * TILE);
            if len > 0 && wanted < held {
                return Err(MechanismError::LetGo { layer, wanted, held });
            }
        }
        self.len = len;
        for layer in &mut self.layers {
            layer.stored = len;
            layer.table.truncate(len);
        }
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.truncate(0).expect("an empty cache is always possible");
    }

    /// Fills what no token has written, and all else, for tests: it must not matter.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.table.poison());
    }

    /// The keys and values of one layer, with those appended and not yet counted in.
    ///
    /// # Errors
    ///
    /// Where the layer does not exist.
    pub fn layer(&self, layer: usize) -> Result<LayerView<'_>, MechanismError> {
        let found = self.layers.get(layer).ok_or(MechanismError::NoSuchLayer { layer, layers: self.layers.len() })?;
        Ok(LayerView { shape: found.shape, len: found.stored, table: &found.table })
    }
}

/// Whether every cache has room for its tokens while the others take theirs: caches of one pool share what is left.
///
/// # Errors
///
/// As [`Cache::room_for`].
pub fn room_for_together<'a>(wanted: impl Iterator<Item = (&'a Cache, usize)>) -> Result<(), MechanismError> {
    let mut pools: Vec<(&Pool, u64)> = Vec::new();
    for (cache, tokens) in wanted {
        cache.room_for(tokens)?;
        let bytes = cache.bytes_to_take(tokens);
        match pools.iter_mut().find(|(pool, _)| pool.is(&cache.pool)) {
            Some((_, total)) => *total = total.saturating_add(bytes),
            None => pools.push((&cache.pool, bytes)),
        }
    }
    pools.into_iter().try_for_each(|(pool, bytes)| pool.room_for(bytes))
}

/// The first position that a query at position `query` or later sees.
fn first_seen(query: usize, window: Option<NonZeroUsize>) -> usize {
    window.map_or(0, |window| (query + 1).saturating_sub(window.get()))
}
