//! Heads: several small attentions side by side, and which query heads share which key-value head.

pub mod textbook;

#[cfg(test)]
mod checks;

use std::ops::Range;

use crate::MechanismError;

/// How many query heads and key-value heads there are, and how wide one is.
///
/// One query head for each key-value head is multi-head attention (MHA), several are grouped-query attention (GQA), all for one
/// are multi-query attention (MQA). Consecutive query heads share: head `h` reads key-value head `h / group`, not `h % kv_heads`.
///
/// Source: Shazeer 2019 (arXiv:1911.02150); Ainslie et al. 2023 (arXiv:2305.13245).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    heads: usize,
    kv_heads: usize,
    d_head: usize,
}

impl Heads {
    /// `heads` query heads over `kv_heads` key-value heads, each `d_head` wide.
    ///
    /// # Errors
    ///
    /// Where a size is zero or `heads` is no multiple of `kv_heads`.
    pub fn new(heads: usize, kv_heads: usize, d_head: usize) -> Result<Self, MechanismError> {
        let possible = kv_heads > 0 && heads > 0 && d_head > 0 && heads.is_multiple_of(kv_heads);
        // What follows multiplies these freely.
        let small = heads.checked_mul(d_head).is_some_and(|width| width <= 1 << 32);
        if possible && small { Ok(Self { heads, kv_heads, d_head }) } else { Err(MechanismError::Heads { heads, kv_heads, d_head }) }
    }

    /// Number of query heads.
    #[must_use]
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Number of key-value heads.
    #[must_use]
    pub fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    /// Width of one head.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.d_head
    }

    /// Query heads that share one key-value head.
    #[must_use]
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// The key-value head that query head `head` reads: `head / group`.
    #[must_use]
    pub fn kv_head_of(&self, head: usize) -> usize {
        head / self.group()
    }

    /// The query heads that read key-value head `kv_head`.
    #[must_use]
    pub fn readers_of(&self, kv_head: usize) -> Range<usize> {
        kv_head * self.group()..(kv_head + 1) * self.group()
    }

    /// Width of all queries of a token: heads × d_head. It need not equal `d_model`.
    #[must_use]
    pub fn query_width(&self) -> usize {
        self.heads * self.d_head
    }

    /// Width of all keys, or all values, of a token: kv_heads × d_head.
    #[must_use]
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.d_head
    }
}
