//! The cache: keys and values of the tokens seen, so that a new token needs only its own.

mod storage;
pub mod textbook;

#[cfg(test)]
mod checks;

pub(crate) use storage::{LANES, value_panels};
pub use storage::{Line, TILE};

use crate::MechanismError;
use storage::HeadStore;

/// What a layer stores for a token: `kv_heads` keys and as many values of `d_head` numbers each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Key-value heads.
    pub kv_heads: usize,
    /// Width of one.
    pub d_head: usize,
}

/// Keys and values of one sequence, layer by layer, as `f32`.
///
/// Memory grows with the text, up to `capacity`; what the full cache takes is known and checked before the first token. A pass appends
/// its tokens to every layer and then calls [`Cache::advance`]; a pass that ends early leaves nothing behind, because the next one
/// appends at the same place.
#[derive(Debug)]
pub struct Cache {
    capacity: usize,
    len: usize,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    shape: LayerShape,
    /// Tokens appended, counted in or not.
    stored: usize,
    heads: Vec<HeadStore>,
}

impl Cache {
    /// An empty cache for at most `capacity` tokens.
    ///
    /// # Errors
    ///
    /// Where the full cache would take more than `limit_bytes`: both numbers are in the message, and nothing was allocated.
    pub fn new(layers: &[LayerShape], capacity: usize, limit_bytes: u64) -> Result<Self, MechanismError> {
        let wanted = Self::bytes_for(layers, capacity);
        match wanted {
            Some(bytes) if bytes <= limit_bytes => {}
            _ => return Err(MechanismError::CacheTooLarge { capacity, wanted: wanted.unwrap_or(u64::MAX), limit: limit_bytes }),
        }
        let layers = layers.iter().map(|&shape| Layer {
            shape,
            stored: 0,
            heads: (0..shape.kv_heads).map(|_| HeadStore::new(shape.d_head)).collect(),
        });
        Ok(Self { capacity, len: 0, layers: layers.collect() })
    }

    /// Bytes that a full cache of `capacity` tokens takes: tokens are stored in tiles of 64, values in lines of 16 numbers. `None` where
    /// the number does not fit.
    #[must_use]
    pub fn bytes_for(layers: &[LayerShape], capacity: usize) -> Option<u64> {
        let tiles = u64::try_from(capacity.div_ceil(TILE)).ok()?;
        let mut bytes = 0_u64;
        for shape in layers {
            let tile = u64::try_from(HeadStore::tile_bytes(shape.d_head)?).ok()?;
            let heads = u64::try_from(shape.kv_heads).ok()?;
            bytes = bytes.checked_add(tiles.checked_mul(tile)?.checked_mul(heads)?)?;
        }
        // More than half of the address space is never there.
        (bytes <= isize::MAX.cast_unsigned() as u64).then_some(bytes)
    }

    /// Bytes allocated now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.layers.iter().flat_map(|layer| &layer.heads).map(HeadStore::bytes).sum()
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

    /// Whether `tokens` more would fit.
    ///
    /// # Errors
    ///
    /// Where they would not, with the numbers. A pass asks this before it begins.
    pub fn room_for(&self, tokens: usize) -> Result<(), MechanismError> {
        match self.len.checked_add(tokens) {
            Some(end) if end <= self.capacity => Ok(()),
            _ => Err(MechanismError::CacheFull { len: self.len, capacity: self.capacity, more: tokens }),
        }
    }

    /// Stores keys and values of the tokens that follow position `len()` in one layer, rotated keys as attention meets them.
    ///
    /// - `k`, `v`  `[token, kv_head, d_head]`
    ///
    /// # Errors
    ///
    /// Where the layer does not exist, the values are not whole tokens, they do not fit, or the system gives no memory.
    pub fn append(&mut self, layer: usize, k: &[f32], v: &[f32]) -> Result<(), MechanismError> {
        let layers = self.layers.len();
        let Some(shape) = self.layers.get(layer).map(|layer| layer.shape) else {
            return Err(MechanismError::NoSuchLayer { layer, layers });
        };
        let width = shape.kv_heads * shape.d_head;
        let tokens = k.len() / width.max(1);
        for (name, values) in [("k", k), ("v", v)] {
            let (wanted, found) = (tokens * width, values.len());
            if found != wanted {
                return Err(MechanismError::WrongLength { name, axes: "token x kv_head x d_head", wanted, found });
            }
        }
        self.room_for(tokens)?;
        let (first, capacity) = (self.len, self.capacity);
        let layer = &mut self.layers[layer];
        for (kv_head, store) in layer.heads.iter_mut().enumerate() {
            store.reserve(first + tokens, capacity)?;
            for token in 0..tokens {
                let at = token * width + kv_head * shape.d_head;
                store.write(first + token, &k[at..at + shape.d_head], &v[at..at + shape.d_head]);
            }
        }
        layer.stored = first + tokens;
        Ok(())
    }

    /// Counts in `tokens` that were appended to every layer.
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
        self.room_for(tokens)?;
        self.len = wanted;
        Ok(())
    }

    /// Forgets all but the first `len` tokens; their memory is kept for the next ones. Does nothing where there are no more.
    ///
    /// What was forgotten is never read again: views end where the appended tokens end.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        for layer in &mut self.layers {
            layer.stored = self.len;
        }
    }

    /// Fills what no token has written with `value`, for tests: it must not matter.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, value: f32) {
        self.layers.iter_mut().flat_map(|layer| &mut layer.heads).for_each(|head| head.poison(value));
    }

    /// The keys and values of one layer, with those appended and not yet counted in.
    ///
    /// # Errors
    ///
    /// Where the layer does not exist.
    pub fn layer(&self, layer: usize) -> Result<LayerView<'_>, MechanismError> {
        let found = self.layers.get(layer).ok_or(MechanismError::NoSuchLayer { layer, layers: self.layers.len() })?;
        Ok(LayerView { shape: found.shape, len: found.stored, heads: &found.heads })
    }
}

/// One layer's keys and values: the only door through which attention reads a cache.
///
/// Whatever the storage, it gives tiles of 64 tokens aligned to position 0. What lies in a tile beyond [`LayerView::len`] is arbitrary and
/// must not be used.
#[derive(Clone, Copy, Debug)]
pub struct LayerView<'a> {
    shape: LayerShape,
    len: usize,
    heads: &'a [HeadStore],
}

impl<'a> LayerView<'a> {
    /// Tokens stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heads and their width.
    #[must_use]
    pub fn shape(&self) -> LayerShape {
        self.shape
    }

    /// Keys of tile `tile`: four quarters of 16 tokens, each `[d_head, 16]`, one [`Line`] for the 16 values of a channel.
    ///
    /// # Panics
    ///
    /// Where the tile begins beyond [`LayerView::len`].
    #[must_use]
    pub fn key_tile(&self, kv_head: usize, tile: usize) -> &'a [Line] {
        self.heads[kv_head].key_tile(tile)
    }

    /// Values of tile `tile`: panels of 16 channels, each 64 tokens, one [`Line`] for the 16 channels of a token. What the last panel has over
    /// `d_head` is arbitrary.
    ///
    /// # Panics
    ///
    /// Where the tile begins beyond [`LayerView::len`].
    #[must_use]
    pub fn value_tile(&self, kv_head: usize, tile: usize) -> &'a [Line] {
        self.heads[kv_head].value_tile(tile)
    }

    /// The key of one token, `[d_head]`.
    ///
    /// # Panics
    ///
    /// Where `position` is not below [`LayerView::len`].
    #[must_use]
    pub fn key(&self, kv_head: usize, position: usize) -> Vec<f32> {
        assert!(position < self.len, "position {position} is not among the {} stored", self.len);
        self.heads[kv_head].key(position)
    }

    /// The value of one token, `[d_head]`.
    ///
    /// # Panics
    ///
    /// Where `position` is not below [`LayerView::len`].
    #[must_use]
    pub fn value(&self, kv_head: usize, position: usize) -> Vec<f32> {
        assert!(position < self.len, "position {position} is not among the {} stored", self.len);
        self.heads[kv_head].value(position)
    }
}
