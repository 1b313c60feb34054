use std::str::FromStr;

use crate::{At, Scope, Site};

/// A choice of sites as a user writes it: `logits`, `blocks.3.attn.q`, `blocks.*.attn.pattern`, `blocks.0-3.attn.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePattern {
    sites: Vec<Site>,
    layers: Option<(usize, usize)>,
}

/// A pattern that names no site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// No site has this name.
    #[error("no site `{found}`; did you mean `{nearest}`?")]
    UnknownSite {
        /// What was written.
        found: String,
        /// The site with the most similar name.
        nearest: String,
    },
    /// The layer is neither a number, nor a range, nor `*`.
    #[error("`{found}` names no layer; wanted a number, a range such as `0-3`, or `*`")]
    UnknownLayer {
        /// What was written.
        found: String,
    },
}

impl SitePattern {
    /// Whether the pattern chooses this place.
    #[must_use]
    pub fn matches(&self, at: At) -> bool {
        let in_layers = self.layers.is_none_or(|(first, last)| (first..=last).contains(&at.layer));
        self.sites.contains(&at.site) && (at.site.scope() == Scope::Pass || in_layers)
    }

    /// The sites it can choose.
    #[must_use]
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }
}

impl FromStr for SitePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (scope, layers, name) = match text.strip_prefix("blocks.") {
            None => (Scope::Pass, None, text),
            Some(rest) => {
                let (layer, name) = rest.split_once('.').unwrap_or((rest, ""));
                (Scope::Block, parse_layers(layer)?, name)
            }
        };
        let chosen: Vec<Site> = Site::ALL.iter().copied().filter(|site| site.scope() == scope && name_matches(name, site.name())).collect();
        if chosen.is_empty() {
            return Err(unknown_site(text));
        }
        Ok(Self { sites: chosen, layers })
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => name.starts_with(stem),
        None => name == pattern,
    }
}

fn parse_layers(text: &str) -> Result<Option<(usize, usize)>, PatternError> {
    let unknown = || PatternError::UnknownLayer { found: text.to_owned() };
    if text == "*" {
        return Ok(None);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first = first.parse().map_err(|_| unknown())?;
    let last = last.parse().map_err(|_| unknown())?;
    if first > last { Err(unknown()) } else { Ok(Some((first, last))) }
}

fn unknown_site(found: &str) -> PatternError {
    let path = |site: Site| match site.scope() {
        Scope::Pass => site.name().to_owned(),
        Scope::Block => format!("blocks.*.{}", site.name()),
    };
    let nearest = Site::ALL
        .iter()
        .map(|site| path(*site))
        .max_by(|a, b| strsim::jaro_winkler(a, found).total_cmp(&strsim::jaro_winkler(b, found)))
        .unwrap_or_default();
    PatternError::UnknownSite { found: found.to_owned(), nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, layer: usize, site: Site, expected: bool) {
        let pattern: SitePattern = text.parse().expect("the pattern is valid");
        assert_eq!(pattern.matches(At { layer, site, first_row: 0 }), expected, "`{text}` at layer {layer}, {site}");
    }

    #[test]
    fn a_pattern_chooses_what_it_names_and_nothing_else() {
        check("logits", 0, Site::Logits, true);
        check("logits", 0, Site::NormOut, false);
        check("blocks.*.attn.pattern", 7, Site::Pattern, true);
        check("blocks.2.attn.q", 2, Site::Query, true);
        check("blocks.2.attn.q", 3, Site::Query, false);
        check("blocks.2.attn.q", 2, Site::QueryRotated, false);
        check("blocks.0-1.attn.*", 1, Site::Mixed, true);
        check("blocks.0-1.attn.*", 2, Site::Mixed, false);
    }

    #[test]
    fn a_misspelt_site_names_the_nearest_one() {
        let error = "blocks.*.attn.patern".parse::<SitePattern>().expect_err("no such site");
        assert_eq!(error.to_string(), "no site `blocks.*.attn.patern`; did you mean `blocks.*.attn.pattern`?");
    }

    #[test]
    fn a_layer_that_is_no_number_is_refused() {
        assert!("blocks.x.attn.q".parse::<SitePattern>().is_err());
        assert!("blocks.3-1.attn.q".parse::<SitePattern>().is_err());
    }
}
