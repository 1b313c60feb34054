//! Finding the texts of control tokens in text that a template wrote.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use tokenizers::AddedToken;

use crate::error::Error;

/// One control token found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: u32,
    /// Bytes, with the white space that the token swallows.
    pub(crate) range: Range<usize>,
}

/// The control tokens, all looked for at once: some vocabularies have thousands that begin alike.
pub(crate) struct SpecialMatcher {
    tokens: Vec<(u32, AddedToken)>,
    /// Of the texts of `tokens`; at one place the longest wins, and of equal ones the first.
    automaton: AhoCorasick,
}

impl SpecialMatcher {
    /// # Errors
    ///
    /// Where there is more text in control tokens than an automaton can hold.
    pub(crate) fn new(added: &[(u32, AddedToken)]) -> Result<Self, Error> {
        let is_control = |(_, token): &&(u32, AddedToken)| token.special && !token.content.is_empty();
        let mut tokens: Vec<(u32, AddedToken)> = added.iter().filter(is_control).cloned().collect();
        tokens.sort_by_key(|(id, _)| *id);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|(_, token)| &token.content))
            .map_err(|error| Error::tokenizer("added tokens", "control tokens of a readable size", error.to_string()))?;
        Ok(Self { tokens, automaton })
    }

    /// Whether any control token's text occurs in `text`.
    pub(crate) fn occurs_in(&self, text: &str) -> bool {
        self.automaton.is_match(text)
    }

    /// Control tokens that lie wholly inside one of the `trusted` ranges of `text`; leftmost first, longest first.
    ///
    /// `trusted` is in rising order and disjoint. White space that a token swallows (`lstrip`, `rstrip`) may lie outside.
    pub(crate) fn find(&self, text: &str, trusted: &[Range<usize>]) -> Vec<Found> {
        let mut found = Vec::new();
        let mut taken = 0; // end of the last match, with swallowed white space
        for range in trusted {
            let mut at = range.start.max(taken);
            while at < range.end
                && let Some(next) = self.automaton.find(Input::new(text).range(at..range.end))
            {
                let (id, token) = &self.tokens[next.pattern().as_usize()];
                let (mut start, mut end) = (next.start(), next.end());
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
        SpecialMatcher::new(&[(1, token("<a>")), (2, token("<a><b>")), (3, token("<s>").rstrip(true).lstrip(true))]).expect("three tokens")
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

    #[test]
    fn a_mebibyte_of_what_six_thousand_tokens_begin_with_takes_no_time() {
        let added: Vec<_> = (0..6_000).map(|id| (id, AddedToken::from(format!("<unused{id}>"), true))).collect();
        let matcher = SpecialMatcher::new(&added).expect("as many as Gemma 3 has");
        let text = "<unused".repeat(150_000) + "42>";
        let begin = std::time::Instant::now();
        let whole = 0..text.len();
        let found = matcher.find(&text, std::slice::from_ref(&whole));
        assert_eq!(found, [Found { id: 42, range: text.len() - "<unused42>".len()..text.len() }]);
        assert!(matcher.occurs_in(&text) && !matcher.occurs_in(&text[..text.len() - 1]));
        assert!(begin.elapsed().as_secs() < 5, "each place was held against every token: {:?}", begin.elapsed());
    }
}
