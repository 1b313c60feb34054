use std::collections::BTreeMap;

use glassbox_anatomy::{At, Interest, Observer, Scope, Site};

/// Keeps what chosen sites hold for the last token of a pass, and nothing of the others: memory does not grow with the prompt.
///
/// Only sites whose first axis is the token have such a row.
#[derive(Debug)]
pub struct LastRow {
    sites: Vec<Site>,
    rows: BTreeMap<(usize, Site), Vec<f32>>,
}

impl LastRow {
    /// Keeps the last rows of `sites`, in every layer.
    ///
    /// # Panics
    ///
    /// For a site whose first axis is not the token: it has no row of a token.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        for site in sites {
            assert_eq!(site.axes()[0], "token", "`{site}` has no row of a token");
        }
        Self { sites: sites.to_vec(), rows: BTreeMap::new() }
    }

    /// The row of a site; of sites outside the blocks, `layer` is 0.
    #[must_use]
    pub fn row(&self, site: Site, layer: usize) -> Option<&[f32]> {
        self.rows.get(&(layer, site)).map(Vec::as_slice)
    }
}

impl Observer for LastRow {
    fn interest(&self, at: At) -> Interest {
        if self.sites.contains(&at.site) { Interest::See } else { Interest::Nothing }
    }

    fn see(&mut self, at: At, value: glassbox_tensor::View<'_>) {
        let width = value.values().len() / value.sizes()[0].max(1);
        let layer = match at.site.scope() {
            Scope::Pass => 0,
            Scope::Block => at.layer,
        };
        // Later pieces of a pass hold later tokens.
        if let Some(row) = value.values().len().checked_sub(width).map(|from| &value.values()[from..]) {
            self.rows.insert((layer, at.site), row.to_vec());
        }
    }
}
