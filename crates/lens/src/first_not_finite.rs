use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_tensor::View;

/// A number of the forward pass that is NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotFinite {
    /// Where it was met.
    pub at: At,
    /// Absolute position of the token whose row holds it.
    pub row: usize,
    /// The number.
    pub value: f32,
}

/// Finds the first site, in the order of the forward pass, that holds a number which is not finite: there the trouble begins, and
/// everything after it only passes it on.
///
/// Scores, patterns and their statistics are left out: a hidden key rightly has a score of minus infinity, as a row that sees nothing has a log-sum-exp
/// of it, and what is wrong with them shows in `attn.z`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstNotFinite {
    found: Option<NotFinite>,
}

impl FirstNotFinite {
    /// What was found; none where every number is finite.
    #[must_use]
    pub fn found(self) -> Option<NotFinite> {
        self.found
    }
}

impl Observer for FirstNotFinite {
    fn interest(&self, at: At) -> Interest {
        let looked_at = self.found.is_none() && !matches!(at.site, Site::Scores | Site::Pattern | Site::Statistics);
        if looked_at { Interest::See } else { Interest::Nothing }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let values = value.values();
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            // The first axis is the token, and rows are of equal length.
            let row_numbers = values.len() / value.sizes().first().copied().unwrap_or(1).max(1);
            self.found = Some(NotFinite { at, row: at.first_row + index / row_numbers, value: values[index] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_site_and_row_with_a_number_that_is_none_are_named() {
        let mut observer = FirstNotFinite::default();
        let mut see = |site: Site, values: &[f32]| {
            let at = At { layer: 1, site, first_row: 10 };
            if observer.interest(at) == Interest::See {
                observer.see(at, View::new(site.axes(), &[3, 2], values).expect("sizes match"));
            }
        };
        see(Site::BlockIn, &[0.0; 6]);
        see(Site::AttnOut, &[0.0, 0.0, 0.0, f32::INFINITY, f32::NAN, 0.0]);
        see(Site::Mid, &[f32::NAN; 6]);
        let found = observer.found().expect("two of the sites hold one");
        assert_eq!((found.at.to_string().as_str(), found.row, found.value), ("blocks.1.attn.out", 11, f32::INFINITY));
    }
}
