use std::ops::Range;

use glassbox_anatomy::{Asks, At, Hides, Interest, Observer};
use glassbox_tensor::View;

/// Several observers that watch the same pass.
///
/// A place is shown with as many rows as any of them wants; each observer then takes the rows it asked for.
pub struct Panel<'o> {
    observers: Vec<&'o mut dyn Observer>,
}

impl<'o> Panel<'o> {
    /// A panel of readers. Editing observers are run alone, so that every edit has one author; one that hides keys may be among readers.
    ///
    /// # Panics
    ///
    /// Where two ask for different things at `attn.stats`: it is shown to all of them with what one asks for, which those who ask for nothing pass over.
    #[must_use]
    pub fn new(observers: Vec<&'o mut dyn Observer>) -> Self {
        let mut asks = observers.iter().map(|observer| observer.asks()).filter(|asks| *asks != Asks::default());
        let first = asks.next().unwrap_or_default();
        assert!(asks.all(|asks| asks == first), "observers of one panel ask for the same statistics, or for nothing");
        Self { observers }
    }
}

impl Observer for Panel<'_> {
    fn interest(&self, at: At) -> Interest {
        let mut rows: Option<Range<usize>> = None;
        for observer in &self.observers {
            match observer.interest(at) {
                Interest::Nothing => {}
                Interest::See | Interest::Edit => return Interest::See,
                Interest::Rows(wanted) => {
                    rows = Some(rows.map_or(wanted.clone(), |held| held.start.min(wanted.start)..held.end.max(wanted.end)));
                }
            }
        }
        rows.map_or(Interest::Nothing, Interest::Rows)
    }

    fn asks(&self) -> Asks<'_> {
        self.observers.iter().map(|observer| observer.asks()).find(|asks| *asks != Asks::default()).unwrap_or_default()
    }

    fn hides(&self, layer: usize) -> Option<Hides> {
        self.observers.iter().find_map(|observer| observer.hides(layer))
    }

    fn see(&mut self, at: At, value: View<'_>) {
        for observer in &mut self.observers {
            if observer.interest(at) != Interest::Nothing {
                observer.see(at, value);
            }
        }
    }
}
