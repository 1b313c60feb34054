/// Finds stop strings in a text that arrives in pieces, and holds back what may become one.
///
/// Only the longest suffix that is a proper beginning of some stop string is held back; everything before it is released
/// at once. The stop string that is complete first wins, and of several that are complete at the same character the
/// longest; the text ends just before it. The result depends on the text alone, not on how it was cut into pieces.
#[derive(Clone, Debug)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    stopped: bool,
}

impl StopStrings {
    /// Watches for `stops`; empty strings are ignored.
    #[must_use]
    pub fn new(stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        Self { stops, held: String::new(), stopped: false }
    }

    /// Whether a stop string was met.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Takes the next piece and gives the text that is certain now.
    pub fn push(&mut self, piece: &str) -> String {
        for character in piece.chars() {
            if self.stopped {
                return String::new();
            }
            self.held.push(character);
            if let Some(length) = self.completed() {
                self.stopped = true;
                self.held.truncate(self.held.len() - length);
                return std::mem::take(&mut self.held);
            }
        }
        let held_from = self.first_beginning();
        let rest = self.held.split_off(held_from);
        std::mem::replace(&mut self.held, rest)
    }

    /// The text still held back, at the end of the generation.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Length of the longest stop string that the held text ends with.
    fn completed(&self) -> Option<usize> {
        self.stops.iter().filter(|stop| self.held.ends_with(stop.as_str())).map(String::len).max()
    }

    /// Where the longest suffix starts that is a proper beginning of a stop string; the end where there is none.
    fn first_beginning(&self) -> usize {
        let begins_a_stop = |start: &usize| {
            let suffix = &self.held[*start..];
            self.stops.iter().any(|stop| stop.len() > suffix.len() && stop.starts_with(suffix))
        };
        self.held.char_indices().map(|(start, _)| start).find(begins_a_stop).unwrap_or(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams `pieces`; gives all that was released, and whether a stop string was met.
    fn check(stops: &[&str], pieces: &[&str], expected: &str, stopped: bool) {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut stop = StopStrings::new(&stops);
        let mut text: String = pieces.iter().map(|piece| stop.push(piece)).collect();
        text.push_str(&stop.finish());
        assert_eq!((text.as_str(), stop.stopped()), (expected, stopped), "stops {stops:?}, pieces {pieces:?}");
    }

    #[test]
    fn a_stop_string_across_pieces_ends_the_text_before_it() {
        check(&["own fox"], &["The quick br", "own", " fox", " jumps"], "The quick br", true);
        check(&["\n"], &["Mars?\n"], "Mars?", true);
        check(&["。结束"], &["好。", "结", "束了"], "好", true);
    }

    #[test]
    fn text_that_never_completes_a_stop_string_is_released_whole() {
        check(&["own cat"], &["The br", "own", " fox"], "The brown fox", false);
        check(&["own cat"], &["The brown ca"], "The brown ca", false);
        check(&[], &["a", "b"], "ab", false);
        check(&[""], &["a", "b"], "ab", false);
    }

    #[test]
    fn the_stop_string_that_is_complete_first_wins_however_the_text_is_cut() {
        check(&["ab", "abc"], &["x", "a", "bc"], "x", true);
        check(&["cd", "bcx"], &["abcd"], "ab", true);
        check(&["abcx", "bc"], &["abcx"], "a", true);
        check(&["abcx", "bc"], &["abc", "x"], "a", true);
        check(&["c", "bc"], &["abc"], "a", true);
    }

    #[test]
    fn only_a_possible_beginning_is_held_back() {
        let mut stop = StopStrings::new(&["###".to_owned()]);
        assert_eq!(stop.push("a#b##"), "a#b");
        assert_eq!(stop.push("c"), "##c");
    }
}
