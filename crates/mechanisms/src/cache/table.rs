//! The page table of a layer: which page holds which tile. Growing, paged, shared and ring are this one table.

use std::sync::Arc;

use super::TILE;
use super::page::Page;
use crate::MechanismError;

/// Pages of consecutive tiles. Tables of several sequences may hold the same page; only a page that one table alone holds is written.
#[derive(Debug, Default)]
pub(super) struct Table {
    first_tile: usize,
    pages: Vec<Arc<Page>>,
}

impl Table {
    /// The first tile held; a ring lets go of those before.
    pub(super) fn first_tile(&self) -> usize {
        self.first_tile
    }

    /// # Panics
    ///
    /// Where the tile is not held: a wrong page must never be read.
    pub(super) fn page(&self, tile: usize) -> &Page {
        let index = tile.checked_sub(self.first_tile).expect("attention asks only for tiles that the ring holds");
        &self.pages[index]
    }

    /// Pages that writing positions `first..end` will take from the pool: new ones, and copies of shared ones. A table that never holds more
    /// than `most_pages` lets go of some on the way.
    pub(super) fn pages_to_take(&self, first: usize, end: usize, most_pages: usize) -> usize {
        let own = |page: &Arc<Page>| Arc::strong_count(page) == 1;
        // All but the first of these tiles are new, or left over from a pass that ended early.
        let held = |tile: usize| self.pages.get(tile - self.first_tile).is_some_and(own);
        let all = (first / TILE..end.div_ceil(TILE)).filter(|tile| !held(*tile)).count();
        all.min(most_pages.saturating_sub(self.pages.iter().filter(|page| own(page)).count()))
    }

    /// Makes the page of `tile` one that this table alone holds. Where it is shared, what it holds before position `first` is copied.
    pub(super) fn own(
        &mut self,
        tile: usize,
        first: usize,
        new: impl FnOnce() -> Result<Page, MechanismError>,
    ) -> Result<(), MechanismError> {
        let index = tile - self.first_tile;
        let Some(page) = self.pages.get_mut(index) else {
            self.pages.push(Arc::new(new()?));
            return Ok(());
        };
        if Arc::get_mut(page).is_none() {
            *page = Arc::new(if first > tile * TILE { page.copy()? } else { new()? });
        }
        Ok(())
    }

    /// The page of `tile`, to be written; [`Table::own`] comes before.
    pub(super) fn page_mut(&mut self, tile: usize) -> &mut Page {
        Arc::get_mut(&mut self.pages[tile - self.first_tile]).expect("a page is owned before it is written")
    }

    /// Lets go of everything from position `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.pages.truncate(len.div_ceil(TILE).saturating_sub(self.first_tile));
        if len == 0 {
            self.first_tile = 0;
        }
    }

    /// Lets go of all tiles before the one of position `first`.
    pub(super) fn let_go_before(&mut self, first: usize) {
        let gone = (first / TILE).saturating_sub(self.first_tile).min(self.pages.len());
        self.pages.drain(..gone);
        self.first_tile += gone;
    }

    /// A table of the same pages, up to position `len`.
    pub(super) fn share(&self, len: usize) -> Self {
        let pages = len.div_ceil(TILE).saturating_sub(self.first_tile);
        Self { first_tile: self.first_tile, pages: self.pages[..pages].to_vec() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.bytes()).sum()
    }

    #[cfg(test)]
    pub(super) fn poison(&mut self) {
        for page in &mut self.pages {
            Arc::get_mut(page).expect("nobody shares what a test poisons").poison();
        }
    }
}
