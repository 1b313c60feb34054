use std::borrow::Cow;
use std::collections::BTreeMap;

use glassbox_anatomy::{At, Interest, Observer, Site, SitePattern};
use safetensors::tensor::{Dtype, View};

/// Keeps the values of chosen sites, to be written as one safetensors file.
///
/// A pass that comes in several chunks is joined along the token (or query) axis; scores and patterns of earlier
/// chunks, which see fewer keys, are widened with minus infinity and 0.
pub struct Capture {
    patterns: Vec<SitePattern>,
    held: BTreeMap<At, Held>,
    bytes: u64,
    limit_bytes: u64,
    over: Option<At>,
}

struct Held {
    sizes: Vec<usize>,
    values: Vec<f32>,
}

/// Why captured values could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The sites chosen hold more than the limit.
    #[error("the chosen sites hold more than {limit_bytes} bytes (passed at `{at}`); choose fewer layers or sites, or raise the limit")]
    OverLimit {
        /// The limit given.
        limit_bytes: u64,
        /// Where it was passed.
        at: At,
    },
    /// No site was met: the pattern chooses layers that the model does not have.
    #[error("the patterns chose no site of this model; it may have fewer layers than the pattern says")]
    NothingChosen,
    /// The values cannot be held by the format.
    #[error("the chosen sites cannot be put into a safetensors file: {reason}")]
    Format {
        /// What the format says.
        reason: String,
    },
}

impl Capture {
    /// Keeps what `patterns` choose, at most `limit_bytes` of it.
    #[must_use]
    pub fn new(patterns: Vec<SitePattern>, limit_bytes: u64) -> Self {
        Self { patterns, held: BTreeMap::new(), bytes: 0, limit_bytes, over: None }
    }

    /// The values kept at a place, with the sizes of its axes.
    #[must_use]
    pub fn get(&self, site: Site, layer: usize) -> Option<(&[usize], &[f32])> {
        self.held.get(&At { layer, site, first_row: 0 }).map(|held| (held.sizes.as_slice(), held.values.as_slice()))
    }

    /// The bytes of a safetensors file with one f32 tensor a site, named as its path, with the axes of the site table.
    ///
    /// # Errors
    ///
    /// Where nothing was kept or the limit was passed.
    pub fn safetensors(&self) -> Result<Vec<u8>, CaptureError> {
        if let Some(at) = self.over {
            return Err(CaptureError::OverLimit { limit_bytes: self.limit_bytes, at });
        }
        if self.held.is_empty() {
            return Err(CaptureError::NothingChosen);
        }
        let named = self.held.iter().map(|(at, held)| (at.to_string(), held));
        safetensors::serialize(named, None).map_err(|error| CaptureError::Format { reason: error.to_string() })
    }
}

impl View for &Held {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.sizes
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        4 * self.values.len()
    }
}

impl Observer for Capture {
    fn interest(&self, at: At) -> Interest {
        let wanted = self.over.is_none() && self.patterns.iter().any(|pattern| pattern.matches(at));
        if wanted { Interest::See } else { Interest::Nothing }
    }

    fn see(&mut self, at: At, value: glassbox_tensor::View<'_>) {
        self.bytes += 4 * value.values().len() as u64;
        if self.bytes > self.limit_bytes {
            self.held.clear();
            self.over = Some(at);
            return;
        }
        let place = At { first_row: 0, ..at };
        match self.held.get_mut(&place) {
            Some(held) => held.join(at.site, value),
            None => {
                self.held.insert(place, Held { sizes: value.sizes().to_vec(), values: value.values().to_vec() });
            }
        }
    }
}

impl Held {
    fn join(&mut self, site: Site, value: glassbox_tensor::View<'_>) {
        if !matches!(site, Site::Scores | Site::Pattern) {
            self.sizes[0] += value.sizes()[0];
            self.values.extend_from_slice(value.values());
            return;
        }
        let unseen = if site == Site::Scores { f32::NEG_INFINITY } else { 0.0 };
        let [heads, old_queries, old_keys] = [self.sizes[0], self.sizes[1], self.sizes[2]];
        let [queries, keys] = [value.sizes()[1], value.sizes()[2]];
        let mut joined = Vec::with_capacity(heads * (old_queries + queries) * keys);
        for head in 0..heads {
            for row in self.values[head * old_queries * old_keys..][..old_queries * old_keys].chunks_exact(old_keys) {
                joined.extend_from_slice(row);
                joined.extend(std::iter::repeat_n(unseen, keys - old_keys));
            }
            joined.extend_from_slice(&value.values()[head * queries * keys..][..queries * keys]);
        }
        self.sizes = vec![heads, old_queries + queries, keys];
        self.values = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(capture: &mut Capture, site: Site, first_row: usize, sizes: &[usize], values: &[f32]) {
        let at = At { layer: 0, site, first_row };
        assert_eq!(capture.interest(at), Interest::See, "{at}");
        capture.see(at, glassbox_tensor::View::new(site.axes(), sizes, values).expect("sizes match"));
    }

    #[test]
    fn chunks_of_a_pass_join_into_what_one_pass_would_give() {
        let mut capture = Capture::new(vec!["blocks.*.attn.*".parse().expect("valid")], 1 << 20);
        see(&mut capture, Site::Pattern, 0, &[1, 1, 1], &[1.0]);
        see(&mut capture, Site::Pattern, 1, &[1, 1, 2], &[0.25, 0.75]);
        assert_eq!(capture.get(Site::Pattern, 0).expect("kept"), (&[1, 2, 2][..], &[1.0, 0.0, 0.25, 0.75][..]));
        see(&mut capture, Site::AttnOut, 0, &[1, 2], &[1.0, 2.0]);
        see(&mut capture, Site::AttnOut, 1, &[1, 2], &[3.0, 4.0]);
        assert_eq!(capture.get(Site::AttnOut, 0).expect("kept"), (&[2, 2][..], &[1.0, 2.0, 3.0, 4.0][..]));
    }

    #[test]
    fn a_file_reads_back_with_the_names_of_the_sites() {
        let mut capture = Capture::new(vec!["logits".parse().expect("valid")], 1 << 20);
        see(&mut capture, Site::Logits, 0, &[1, 3], &[1.0, 2.0, 3.0]);
        let bytes = capture.safetensors().expect("something was kept");
        let file = safetensors::SafeTensors::deserialize(&bytes).expect("valid");
        assert_eq!(file.tensor("logits").expect("there").shape(), [1, 3]);
    }

    #[test]
    fn more_than_the_limit_is_refused_and_nothing_is_kept() {
        let mut capture = Capture::new(vec!["logits".parse().expect("valid")], 8);
        see(&mut capture, Site::Logits, 0, &[1, 3], &[1.0, 2.0, 3.0]);
        let error = capture.safetensors().expect_err("over the limit");
        assert!(error.to_string().contains("more than 8 bytes"), "{error}");
    }
}
