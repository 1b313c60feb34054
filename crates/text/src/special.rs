//! Finding the texts of control tokens in text that a template wrote.

use std::collections::HashMap;
use std::ops::Range;

use tokenizers::AddedToken;

/// One control token found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: u32,
    /// Bytes, with the white space that the token swallows.
    pub(crate) range: Range<usize>,
}

/// The control tokens by their first byte, longest first.
pub(crate) struct SpecialMatcher {
    by_first_byte: HashMap<u8, Vec<(u32, AddedToken)>>,
}

impl SpecialMatcher {
    pub(crate) fn new(added: &[(u32, AddedToken)]) -> Self {
        let mut by_first_byte: HashMap<u8, Vec<(u32, AddedToken)>> = HashMap::new();
        for (id, token) in added.iter().filter(|(_, token)| token.special) {
            if let Some(&first) = token.content.as_bytes().first() {
                by_first_byte.entry(first).or_default().push((*id, token.clone()));
            }
        }
        for tokens in by_first_byte.values_mut() {
            tokens.sort_by_key(|(id, token)| (std::cmp::Reverse(token.content.len()), *id));
        }
        Self { by_first_byte }
    }

    /// Whether any control token's text occurs in `text`.
    pub(crate) fn occurs_in(&self, text: &str) -> bool {
        (0..text.len()).any(|at| self.longest_at(text, at, text.len()).is_some())
    }

    /// Control tokens that lie wholly inside one of the `trusted` ranges of `text`; leftmost first, longest first.
    ///
    /// `trusted` is in rising order and disjoint. White space that a token swallows (`lstrip`, `rstrip`) may lie outside.
    pub(crate) fn find(&self, text: &str, trusted: &[Range<usize>]) -> Vec<Found> {
        let mut found = Vec::new();
        let mut taken = 0; // end of the last match, with swallowed white space
        for range in trusted {
            let mut at = range.start.max(taken);
            while at < range.end {
                let Some((id, token)) = self.longest_at(text, at, range.end) else {
                    at += 1;
                    continue;
                };
                let mut start = at;
                let mut end = at + token.content.len();
                at = end;
                if token.single_word && !stands_alone(text, start, end) {
                    continue;
                }
                if token.lstrip {
                    start = text[..start].trim_end().len().max(taken);
                }
                if token.rstrip {
                    end = text.len() - text[end..].trim_start().len();
                }
                taken = end;
                at = at.max(end);
                found.push(Found { id: *id, range: start..end });
            }
        }
        found
    }

    fn longest_at(&self, text: &str, at: usize, end: usize) -> Option<&(u32, AddedToken)> {
        let bytes = &text.as_bytes()[at..end];
        self.by_first_byte.get(bytes.first()?)?.iter().find(|(_, token)| bytes.starts_with(token.content.as_bytes()))
    }
}

fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let word = |character: char| character.is_alphanumeric() || character == '_';
    !text[..start].chars().next_back().is_some_and(word) && !text[end..].chars().next().is_some_and(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher() -> SpecialMatcher {
        let token = |text: &str| AddedToken::from(text, true);
        SpecialMatcher::new(&[(1, token("<a>")), (2, token("<a><b>")), (3, token("<s>").rstrip(true).lstrip(true))])
    }

    fn find(text: &str, trusted: Range<usize>) -> Vec<Found> {
        matcher().find(text, &[trusted])
    }

    #[test]
    fn the_longest_control_token_wins() {
        let found = find("x<a><b><a>", 0..10);
        assert_eq!(found.iter().map(|f| f.id).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_control_token_that_reaches_out_of_the_trusted_text_is_none() {
        assert!(find("<a>", 0..2).is_empty());
        assert!(find("<a>", 1..3).is_empty());
    }

    #[test]
    fn a_stripping_token_swallows_white_space_around_it() {
        let found = find("x  <s> \ny", 0..9);
        assert_eq!(found, [Found { id: 3, range: 1..8 }]);
    }
}
