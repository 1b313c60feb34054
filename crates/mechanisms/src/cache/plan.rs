//! What a cache is to hold, and what that takes: known before the first token.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use super::page::Page;
use super::{LayerShape, TILE};

/// How keys and values are stored. Decided when they are written: attention reads what is stored, of the current tokens too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KvType {
    /// IEEE binary32: unchanged.
    #[default]
    F32,
    /// IEEE binary16, the nearest number, ties to even; 65520 and more become infinite.
    F16,
    /// Blocks of 32 along `d_head`, for each token and head: codes of 8 bits and one f16 scale; the last block may be shorter.
    Q8_0,
}

impl KvType {
    /// Every type, from the largest to the smallest.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Q8_0];

    /// `f32`, `f16`, `q8_0`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }
}

impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KvType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kv_type| kv_type.name() == text);
        found.ok_or_else(|| format!("keys and values are stored as `f32`, `f16` or `q8_0`, found `{text}`"))
    }
}

/// One layer of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerPlan {
    /// Heads and their width.
    pub shape: LayerShape,
    /// Where given, the layer is a ring: it keeps only the tiles in which a query that is still to come sees a key, its own among
    /// `window` keys. `None` keeps everything.
    pub window: Option<NonZeroUsize>,
}

/// What a cache is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// One a layer.
    pub layers: Vec<LayerPlan>,
    /// How keys and values are stored.
    pub kv_type: KvType,
    /// Most tokens.
    pub capacity: usize,
    /// Most tokens appended before [`super::Cache::advance`]: a ring holds these beside its window.
    pub pass_tokens: usize,
}

impl CachePlan {
    /// A cache that keeps everything as `f32`.
    #[must_use]
    pub fn growing(layers: &[LayerShape], capacity: usize) -> Self {
        let layers = layers.iter().map(|&shape| LayerPlan { shape, window: None }).collect();
        Self { layers, kv_type: KvType::F32, capacity, pass_tokens: capacity }
    }

    /// Bytes of the keys and values of a full cache, which no cache of this plan exceeds and some reach: whole pages of 64 tokens, values in
    /// lines of 16 numbers. `None` where the number does not fit.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let mut bytes = 0_u64;
        for layer in &self.layers {
            let page = u64::try_from(Page::bytes_of(layer.shape, self.kv_type)?).ok()?;
            bytes = bytes.checked_add(u64::try_from(self.pages_of(layer)).ok()?.checked_mul(page)?)?;
        }
        // More than half of the address space is never there.
        (bytes <= isize::MAX.cast_unsigned() as u64).then_some(bytes)
    }

    /// Most pages that a layer holds at once. A ring holds the keys that the tokens of a pass see: `window - 1` before the first, and the
    /// tokens themselves; that many consecutive positions touch one tile more than they fill where they begin at the end of one.
    pub(super) fn pages_of(&self, layer: &LayerPlan) -> usize {
        let all = self.capacity.div_ceil(TILE);
        let Some(window) = layer.window else { return all };
        let keys = (window.get() - 1).saturating_add(self.pass_tokens.clamp(1, self.capacity.max(1)));
        all.min((keys - 1).div_ceil(TILE) + 1)
    }
}
