//! Which of the GGUF files of a repository a quantisation means.
//!
//! Publishers end the file's name with the quantisation, after `-` or `.`; a large one is split into parts
//! `-00001-of-00003`; beside the weights stand files for other purposes (`mmproj-…` for pictures, `imatrix…`).
//!
//! Source: ggml, docs/gguf.md, "GGUF Naming Convention".

use std::fs;
use std::path::Path;

use crate::gguf::parts::PartName;

/// One choice: a GGUF file, or the parts of a split one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufChoice {
    /// The end of the name, which tells the quantisation as a rule: `Q4_K_M`.
    pub label: String,
    /// The file, or all its parts in order; the first is the one to open.
    pub files: Vec<String>,
    /// How many parts there should be; more than there are `files` where the listing lacks some.
    pub parts: usize,
}

impl GgufChoice {
    /// The file to open.
    #[must_use]
    pub fn first(&self) -> &str {
        self.files.first().map_or("", String::as_str)
    }
}

/// The choices among the names of a listing, in alphabetical order; folders before names are allowed.
#[must_use]
pub fn gguf_choices<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<GgufChoice> {
    let mut names: Vec<&str> = names.into_iter().filter(|name| is_weights(name)).collect();
    names.sort_unstable();
    names.dedup();
    let mut choices: Vec<(String, GgufChoice)> = Vec::new();
    for name in names {
        let (stem, parts) = PartName::of(name).map_or((&name[..name.len() - EXTENSION.len()], 1), |part| (part.stem, part.count));
        let key = format!("{stem}/{parts}");
        match choices.iter_mut().find(|(known, _)| *known == key) {
            Some((_, choice)) => choice.files.push(name.to_owned()),
            None => choices.push((key, GgufChoice { label: label(stem).to_owned(), files: vec![name.to_owned()], parts })),
        }
    }
    choices.into_iter().map(|(_, choice)| choice).collect()
}

/// Why a choice could not be made; each carries what there is to choose from, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoChoice {
    /// None has the quantisation that is wanted.
    None(String),
    /// Several have it.
    Several(String),
    /// This one lacks parts.
    Incomplete(String),
}

/// The one choice that `quantisation` means, in any case: the one whose label is just this, or else the only one with it in the
/// name. Without a quantisation, the only one there is.
///
/// # Errors
///
/// Where it is none, several, or one with missing parts.
pub fn choose_gguf<'a>(choices: &'a [GgufChoice], quantisation: Option<&str>) -> Result<&'a GgufChoice, NoChoice> {
    let wanted = quantisation.unwrap_or_default().to_ascii_lowercase();
    let exact: Vec<&GgufChoice> = choices.iter().filter(|choice| choice.label.eq_ignore_ascii_case(&wanted)).collect();
    let holding = || choices.iter().filter(|choice| choice.first().to_ascii_lowercase().contains(&wanted)).collect();
    let matching: Vec<&GgufChoice> = if exact.is_empty() { holding() } else { exact };
    match matching.as_slice() {
        [choice] if choice.files.len() != choice.parts => {
            Err(NoChoice::Incomplete(format!("{} of {} parts of {}", choice.files.len(), choice.parts, choice.first())))
        }
        [choice] => Ok(choice),
        [] => Err(NoChoice::None(in_words(choices.iter()))),
        several => Err(NoChoice::Several(in_words(several.iter().copied()))),
    }
}

/// The names of the GGUF files in a folder and in the folders directly inside it.
pub(crate) fn gguf_files(folder: &Path) -> Vec<String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = Vec::new();
    for entry in entries(folder) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            let inside = entries(&path).filter(|inner| inner.path().is_file());
            names.extend(inside.map(|inner| format!("{name}/{}", inner.file_name().to_string_lossy())));
        } else if path.is_file() {
            names.push(name);
        }
    }
    names.retain(|name| is_weights(name));
    names.sort_unstable();
    names
}

const EXTENSION: &str = ".gguf";

fn is_weights(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let aside = file.starts_with("mmproj") || file.starts_with("mtp-") || file.starts_with("imatrix") || file.contains("-mmproj-");
    file.ends_with(EXTENSION) && file.len() > EXTENSION.len() && !aside
}

/// The last part of a name, with the prefix `UD-` of Unsloth's dynamic quantisations.
fn label(stem: &str) -> &str {
    let start = stem.rfind(['-', '.', '/']).map_or(0, |at| at + 1);
    let before = &stem[..start];
    let dynamic = before.len() >= 3 && before.is_char_boundary(before.len() - 3) && before[before.len() - 3..].eq_ignore_ascii_case("ud-");
    if dynamic && start > 3 { &stem[start - 3..] } else { &stem[start..] }
}

/// The labels, or the names where labels do not tell choices apart.
fn in_words<'a>(choices: impl Iterator<Item = &'a GgufChoice> + Clone) -> String {
    const LISTED: usize = 40; // the fullest repositories have about 30 quantisations
    let mut labels: Vec<String> = choices.clone().map(|choice| choice.label.to_ascii_lowercase()).collect();
    labels.sort_unstable();
    let distinct = labels.windows(2).all(|pair| pair[0] != pair[1]);
    let word = |choice: &GgufChoice| if distinct { choice.label.clone() } else { choice.first().to_owned() };
    let mut words: Vec<String> = choices.map(|choice| crate::error::clip(&word(choice))).collect();
    let more = words.len().saturating_sub(LISTED);
    words.truncate(LISTED);
    let list = words.join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], quantisation: Option<&str>) -> Result<Vec<String>, NoChoice> {
        choose_gguf(&gguf_choices(names.iter().copied()), quantisation).map(|choice| choice.files.clone())
    }

    #[test]
    fn a_quantisation_is_found_in_any_case_and_the_exact_one_wins() {
        let names = ["M-Q4_0.gguf", "M-Q4_0_4_4.gguf", "M-UD-Q4_0.gguf", "m.q8_0.gguf", "M-IQ4_NL.gguf", "mmproj-M-Q8_0.gguf", "notes.txt"];
        let check = |quantisation: &str, file: &str| assert_eq!(chosen(&names, Some(quantisation)), Ok(vec![file.to_owned()]));
        check("Q4_0", "M-Q4_0.gguf");
        check("q4_0", "M-Q4_0.gguf");
        check("ud-q4_0", "M-UD-Q4_0.gguf");
        check("Q8_0", "m.q8_0.gguf");
        check("iq4", "M-IQ4_NL.gguf");
    }

    #[test]
    fn a_choice_is_never_made_silently() {
        let names = ["M-Q4_K_M.gguf", "M-Q4_K_S.gguf", "M-Q8_0.gguf"];
        assert_eq!(chosen(&names, Some("Q4")), Err(NoChoice::Several("Q4_K_M, Q4_K_S".to_owned())));
        assert_eq!(chosen(&names, None), Err(NoChoice::Several("Q4_K_M, Q4_K_S, Q8_0".to_owned())));
        assert_eq!(chosen(&names, Some("Q2_K")), Err(NoChoice::None("Q4_K_M, Q4_K_S, Q8_0".to_owned())));
        assert_eq!(chosen(&["a-Q8_0.gguf", "b-Q8_0.gguf"], Some("q8_0")), Err(NoChoice::Several("a-Q8_0.gguf, b-Q8_0.gguf".to_owned())));
        assert_eq!(chosen(&[], None), Err(NoChoice::None(String::new())));
    }

    #[test]
    fn the_only_file_needs_no_quantisation() {
        assert_eq!(chosen(&["model.gguf", "README.md", "imatrix.gguf"], None), Ok(vec!["model.gguf".to_owned()]));
    }

    #[test]
    fn the_parts_of_a_split_file_are_one_choice_and_all_must_be_there() {
        let parts = ["Q4_K_M/m-Q4_K_M-00002-of-00002.gguf", "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", "m-Q8_0-00001-of-00003.gguf"];
        assert_eq!(chosen(&parts, Some("q4_k_m")), Ok(vec![parts[1].to_owned(), parts[0].to_owned()]));
        assert_eq!(chosen(&parts, Some("q8_0")), Err(NoChoice::Incomplete("1 of 3 parts of m-Q8_0-00001-of-00003.gguf".to_owned())));
    }

    #[test]
    fn strange_names_do_not_break_the_choice() {
        for name in [".gguf", "ä.gguf", "-.gguf", "ud-.gguf", "x-99999-of-00001.gguf", "a/ud-ü.gguf", "x-00000-of-00000.gguf"] {
            let _ = chosen(&[name], Some("x"));
            assert!(gguf_choices([name]).iter().all(|choice| choice.parts == 1), "{name}");
        }
    }
}
