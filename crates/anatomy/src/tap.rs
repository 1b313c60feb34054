use std::ops::Range;

use glassbox_tensor::{View, ViewMut};

use crate::{Asks, At, Hides, Interest, Observer, Site};

/// What the forward pass holds to narrate: the observer, and where the pass is now.
pub struct Tap<'o, O: Observer + ?Sized> {
    observer: &'o mut O,
    layer: usize,
    first_row: usize,
}

impl<'o, O: Observer + ?Sized> Tap<'o, O> {
    /// A tap for a pass whose first token has the absolute position `first_row`.
    pub fn new(observer: &'o mut O, first_row: usize) -> Self {
        Self { observer, layer: 0, first_row }
    }

    /// The same tap inside block `layer`.
    pub fn layer(&mut self, layer: usize) -> Tap<'_, O> {
        Tap { observer: self.observer, layer, first_row: self.first_row }
    }

    /// The same tap for rows that start at the absolute position `first_row`.
    pub fn from_row(&mut self, first_row: usize) -> Tap<'_, O> {
        Tap { observer: self.observer, layer: self.layer, first_row }
    }

    /// Narrates a value: one line a site. `sizes` follow the axes of the site.
    #[inline(always)]
    pub fn at(&mut self, site: Site, sizes: &[usize], values: &mut [f32]) {
        if self.observer.is_on() {
            self.narrate(site, sizes, values);
        }
    }

    /// Which rows of a place that is computed only when wanted (scores, pattern, statistics) the observer wants to see.
    #[inline(always)]
    pub fn wanted_rows(&self, site: Site, all: Range<usize>) -> Option<Range<usize>> {
        if !self.observer.is_on() {
            return None;
        }
        let rows = match self.observer.interest(self.place(site)) {
            Interest::Nothing => return None,
            Interest::See | Interest::Edit => all,
            Interest::Rows(rows) => rows.start.max(all.start)..rows.end.min(all.end),
        };
        (!rows.is_empty()).then_some(rows)
    }

    /// What the observer wants at `attn.stats` beyond what is always there.
    #[must_use]
    pub fn asks(&self) -> Asks<'_> {
        self.observer.asks()
    }

    /// What the observer hides in this layer.
    #[must_use]
    #[inline(always)]
    pub fn hides(&self) -> Option<Hides> {
        if self.observer.is_on() { self.observer.hides(self.layer) } else { None }
    }

    #[cold]
    fn narrate(&mut self, site: Site, sizes: &[usize], values: &mut [f32]) {
        let at = self.place(site);
        match self.observer.interest(at) {
            Interest::Nothing => {}
            Interest::See => self.observer.see(at, view(at, sizes, values)),
            Interest::Rows(rows) => self.show_rows(at, sizes, values, rows),
            Interest::Edit => {
                let value = ViewMut::new(site.axes(), sizes, values).unwrap_or_else(|error| panic!("{at}: {error}"));
                self.observer.edit(at, value);
            }
        }
    }

    /// Rows lie along the first axis, except in scores and patterns, which come already cut to the rows wanted.
    fn show_rows(&mut self, at: At, sizes: &[usize], values: &[f32], rows: Range<usize>) {
        if matches!(at.site, Site::Scores | Site::Pattern) {
            self.observer.see(at, view(at, sizes, values));
            return;
        }
        let held = at.first_row..at.first_row + sizes[0];
        let rows = rows.start.max(held.start)..rows.end.min(held.end);
        if rows.is_empty() {
            return;
        }
        let row = values.len() / sizes[0];
        let cut = &values[(rows.start - held.start) * row..(rows.end - held.start) * row];
        let mut cut_sizes = sizes.to_vec();
        cut_sizes[0] = rows.len();
        let at = At { first_row: rows.start, ..at };
        self.observer.see(at, view(at, &cut_sizes, cut));
    }

    fn place(&self, site: Site) -> At {
        At { layer: self.layer, site, first_row: self.first_row }
    }
}

fn view<'a>(at: At, sizes: &'a [usize], values: &'a [f32]) -> View<'a> {
    View::new(at.site.axes(), sizes, values).unwrap_or_else(|error| panic!("{at}: {error}"))
}
