//! The name of a model on the Hugging Face hub, with the revision and the quantisation that are wanted of it.

use std::fmt;

use crate::cache::{is_name, is_revision};
use crate::error::{CheckpointError, Fault, Place, clip};

/// `org/name`, `org/name@revision`, `org/name:QUANT` or `org/name@revision:QUANT`; the oldest models have no `org`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// `org/name`.
    pub name: String,
    /// A branch, a tag or a commit; `main` where there is none.
    pub revision: Option<String>,
    /// Which of several GGUF files, in any case: `Q4_K_M`.
    pub quantisation: Option<String>,
}

impl ModelName {
    /// Takes `text` apart.
    ///
    /// # Errors
    ///
    /// Where a part is empty or has characters that the hub does not admit, as those that would lead out of the cache.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let (rest, quantisation) = split(text, ':');
        let (name, revision) = split(rest, '@');
        let found = if !is_name(name) {
            "a name that no model can have"
        } else if !revision.is_none_or(is_revision) {
            "a revision that cannot be"
        } else if !quantisation.is_none_or(is_quantisation) {
            "a quantisation that cannot be"
        } else {
            let owned = |part: Option<&str>| part.map(str::to_owned);
            return Ok(Self { name: name.to_owned(), revision: owned(revision), quantisation: owned(quantisation) });
        };
        Err(CheckpointError::NotFound(Box::new(Fault {
            file: if text.is_empty() { "``".to_owned() } else { clip(text) },
            place: Place::Whole,
            wanted: "`org/name`, `org/name@revision` or `org/name:QUANT`".to_owned(),
            found: found.to_owned(),
            remedy: "check the spelling".to_owned(),
        })))
    }

    /// The revision, `main` where none was given.
    #[must_use]
    pub fn revision_or_main(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.revision.iter().try_for_each(|revision| write!(f, "@{revision}"))?;
        self.quantisation.iter().try_for_each(|quantisation| write!(f, ":{quantisation}"))
    }
}

/// What stands before the revision and the quantisation, whether or not it is a name.
pub(crate) fn head(text: &str) -> &str {
    split(split(text, ':').0, '@').0
}

/// `name:part` → (`name`, `part`).
fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(name, part)| (name, Some(part)))
}

fn is_quantisation(part: &str) -> bool {
    const LONGEST: usize = 64; // characters; the longest in use, `UD-IQ2_XXS`, has 10
    !part.is_empty() && part.len() <= LONGEST && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, Option<String>, Option<String>)> {
        ModelName::parse(text).ok().map(|name| (name.name, name.revision, name.quantisation))
    }

    #[test]
    fn a_name_has_an_optional_revision_and_quantisation() {
        let check = |text: &str, name: &str, revision: Option<&str>, quantisation: Option<&str>| {
            let owned = |part: Option<&str>| part.map(str::to_owned);
            assert_eq!(parts(text), Some((name.to_owned(), owned(revision), owned(quantisation))), "{text}");
            assert_eq!(ModelName::parse(text).expect("a name").to_string(), text);
        };
        check("gpt2", "gpt2", None, None);
        check("org/name", "org/name", None, None);
        check("org/name@v1.0", "org/name", Some("v1.0"), None);
        check("org/name@refs/pr/1", "org/name", Some("refs/pr/1"), None);
        check("org/name:Q4_K_M", "org/name", None, Some("Q4_K_M"));
        check("org/name@main:UD-Q4_K_XL", "org/name", Some("main"), Some("UD-Q4_K_XL"));
    }

    #[test]
    fn a_part_that_is_empty_or_leads_out_of_the_cache_is_refused() {
        let wrong = [
            "",
            "/",
            "a/b/c",
            "../name",
            "org/..",
            "org/na me",
            "-org/name",
            "org/name@",
            "org/name:",
            "org/name@../../x",
            "org/name@a//b",
            "org/name@/x",
            "org/name:../x",
            "org/name:Q4@main",
            "org/n\u{f6}me",
            "org--x/name",
            "org/name@a\nb",
        ];
        for text in wrong {
            assert_eq!(parts(text), None, "{text:?}");
        }
    }
}
