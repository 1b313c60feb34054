use super::{LANES, LayerShape, Line, TILE, Table};

/// One layer's keys and values: the only door through which attention reads a cache.
///
/// Whatever the storage, it gives tiles of 64 tokens aligned to position 0. What lies in a tile beyond [`LayerView::len`] is arbitrary and
/// must not be used.
#[derive(Clone, Copy, Debug)]
pub struct LayerView<'a> {
    pub(super) shape: LayerShape,
    pub(super) len: usize,
    pub(super) table: &'a Table,
}

impl<'a> LayerView<'a> {
    /// Tokens stored, those included that a ring no longer holds: one more than the last position.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first position held: 0, except in a ring.
    #[must_use]
    pub fn first(&self) -> usize {
        self.table.first_tile() * TILE
    }

    /// Heads and their width.
    #[must_use]
    pub fn shape(&self) -> LayerShape {
        self.shape
    }

    /// Keys of tile `tile`: four quarters of 16 tokens, each `[d_head, 16]`, one [`Line`] for the 16 values of a channel. In `widened`
    /// where they are not stored as `f32`.
    ///
    /// # Panics
    ///
    /// Where the tile begins beyond [`LayerView::len`] or ends before [`LayerView::first`].
    #[must_use]
    pub fn key_tile<'s>(&self, kv_head: usize, tile: usize, widened: &'s mut Vec<Line>) -> &'s [Line]
    where
        'a: 's,
    {
        self.table.page(tile).keys(kv_head, widened)
    }

    /// Values of tile `tile`: panels of 16 channels, each 64 tokens, one [`Line`] for the 16 channels of a token. What the last panel has over
    /// `d_head` is arbitrary. In `widened` where they are not stored as `f32`.
    ///
    /// # Panics
    ///
    /// Where the tile begins beyond [`LayerView::len`] or ends before [`LayerView::first`].
    #[must_use]
    pub fn value_tile<'s>(&self, kv_head: usize, tile: usize, widened: &'s mut Vec<Line>) -> &'s [Line]
    where
        'a: 's,
    {
        self.table.page(tile).values(kv_head, widened)
    }

    /// The key of one token, `[d_head]`, as it is stored.
    ///
    /// # Panics
    ///
    /// Where `position` is not among those held.
    #[must_use]
    pub fn key(&self, kv_head: usize, position: usize) -> Vec<f32> {
        let mut widened = Vec::new();
        let (keys, token) = (self.key_tile(kv_head, self.tile_of(position), &mut widened), position % TILE);
        let quarter = token / LANES * self.shape.d_head;
        keys[quarter..quarter + self.shape.d_head].iter().map(|line| line.0[token % LANES]).collect()
    }

    /// The value of one token, `[d_head]`, as it is stored.
    ///
    /// # Panics
    ///
    /// Where `position` is not among those held.
    #[must_use]
    pub fn value(&self, kv_head: usize, position: usize) -> Vec<f32> {
        let mut widened = Vec::new();
        let values = self.value_tile(kv_head, self.tile_of(position), &mut widened);
        values[position % TILE..].iter().step_by(TILE).flat_map(|line| line.0).take(self.shape.d_head).collect()
    }

    fn tile_of(&self, position: usize) -> usize {
        let held = self.first()..self.len;
        assert!(held.contains(&position), "position {position} is not among those held, {held:?}");
        position / TILE
    }
}
