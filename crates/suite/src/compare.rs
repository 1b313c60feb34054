//! Reading a value and its citations out of an answer, and comparing it: cheapest and surest comparison first.
//!
//! ```text
//! exact -> normalised -> number | choice -> alias -> "I do not know" -> contained
//! ```
//!
//! The rung that decided is recorded. An answer without a readable value is `unparsed`, never silently wrong.

use glassbox_record::{Expected, Judgement, PassageRole, Rung};

use crate::schema::{Accept, CheckSpec};

/// An answer, read and judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    pub(crate) judgement: Judgement,
    pub(crate) rung: Option<Rung>,
    pub(crate) extracted: Option<String>,
    pub(crate) cited: Vec<usize>,
    pub(crate) captured_by: Option<usize>,
    pub(crate) grounded: Option<bool>,
    pub(crate) note: Option<String>,
}

/// A longer answer is an essay, not a value: what it contains says little.
const LONGEST_VALUE_CHARS: usize = 200;

/// Judges the text of an answer.
///
/// An answer that names the right value and also the value of another document is wrong: it did not decide.
pub(crate) fn judge(text: &str, expected: &Expected, check: &CheckSpec) -> Judged {
    let (without_citations, cited) = split_citations(text);
    let value = first_value_line(&without_citations);
    let mut judged =
        Judged { judgement: Judgement::Unparsed, rung: None, extracted: None, cited, captured_by: None, grounded: None, note: None };
    if normalised(value).is_empty() {
        judged.note = Some("the answer holds no value".to_owned());
        return judged;
    }
    judged.extracted = Some(value.to_owned());
    if let Some(rung) = whole_match(value, expected).filter(|rung| check.accept > Accept::Exact || *rung == Rung::Exact) {
        judged.judgement = Judgement::Right;
        judged.rung = Some(rung);
    } else if says_unknown(value, check) {
        judged.judgement = Judgement::Abstained;
        return judged;
    } else if value.chars().count() > LONGEST_VALUE_CHARS {
        judged.note = Some(format!("longer than {LONGEST_VALUE_CHARS} characters: an essay, not a value"));
        return judged;
    } else {
        judge_contained(value, expected, check, &mut judged);
    }
    judged.grounded = grounding(&judged, expected);
    judged
}

fn judge_contained(value: &str, expected: &Expected, check: &CheckSpec, judged: &mut Judged) {
    judged.judgement = Judgement::Wrong;
    // A lone letter occurs in any text: `A or B` has chosen nothing.
    let right = right_values(expected).filter(|right| choice_letter(right).is_none()).any(|right| contains_value(value, right));
    let other = other_document_named(value, expected);
    match (right, other) {
        (true, Some(number)) => judged.note = Some(format!("names the right value and also that of document {number}")),
        (true, None) if check.accept >= Accept::Contained => {
            judged.judgement = Judgement::Right;
            judged.rung = Some(Rung::Contained);
        }
        (true, None) => judged.note = Some("holds the right value among other words".to_owned()),
        (false, other) => judged.captured_by = other,
    }
}

/// Number of a document other than the gold one whose value stands in the answer.
fn other_document_named(value: &str, expected: &Expected) -> Option<usize> {
    let gold = expected.passages.iter().find(|passage| passage.role == PassageRole::Gold);
    let names = |passage: &&glassbox_record::Passage| match &passage.value {
        Some(own) => contains_value(value, own),
        None => contains_value(&passage.text, value) && !gold.is_some_and(|gold| contains_value(&gold.text, value)),
    };
    let position = expected.passages.iter().position(|passage| passage.role != PassageRole::Gold && names(&passage))?;
    Some(position + 1)
}

/// Whether the answered value stands in a cited document; none where nothing was cited.
fn grounding(judged: &Judged, expected: &Expected) -> Option<bool> {
    if judged.cited.is_empty() {
        return None;
    }
    let extracted = judged.extracted.as_deref()?;
    let captured = judged.captured_by.and_then(|number| expected.passages.get(number - 1)).and_then(|passage| passage.value.as_deref());
    let value = match judged.judgement {
        Judgement::Right => expected.answer.as_str(),
        _ => captured.unwrap_or(extracted),
    };
    let holds = |text: &str| {
        contains_value(text, value)
            || (judged.judgement == Judgement::Right && right_values(expected).any(|right| contains_value(text, right)))
    };
    let cited = judged.cited.iter().filter_map(|number| expected.passages.get(number.checked_sub(1)?));
    Some(cited.into_iter().any(|passage| holds(&passage.text)))
}

fn whole_match(value: &str, expected: &Expected) -> Option<Rung> {
    if value == expected.answer.trim() {
        return Some(Rung::Exact);
    }
    let plain = normalised(value);
    if plain == normalised(&expected.answer) {
        return Some(Rung::Normalised);
    }
    if number(&expected.answer).is_some_and(|wanted| number(value) == Some(wanted)) {
        return Some(Rung::Number);
    }
    if choice_letter(&expected.answer).is_some_and(|wanted| chosen_letter(value) == Some(wanted)) {
        return Some(Rung::Choice);
    }
    let is_alias = |alias: &String| normalised(alias) == plain || number(alias).is_some_and(|wanted| number(value) == Some(wanted));
    expected.aliases.iter().any(is_alias).then_some(Rung::Alias)
}

fn right_values(expected: &Expected) -> impl Iterator<Item = &str> {
    std::iter::once(expected.answer.as_str()).chain(expected.aliases.iter().map(String::as_str))
}

/// Phrases that mean "I do not know", normalised.
const UNKNOWN: [&str; 26] = [
    "do not know",
    "dont know",
    "does not know",
    "not know",
    "unknown",
    "cannot answer",
    "cant answer",
    "no information",
    "not mentioned",
    "not stated",
    "not provided",
    "not specified",
    "not in documents",
    "not contain",
    "not found",
    "cannot be determined",
    "none of documents",
    "不知道",
    "不清楚",
    "无法",
    "没有提",
    "未提",
    "没有相关",
    "未说明",
    "没有说明",
    "资料中没有",
];

fn says_unknown(value: &str, check: &CheckSpec) -> bool {
    let plain = normalised(value);
    UNKNOWN.iter().any(|phrase| holds_whole(&plain, phrase))
        || check.abstain.iter().map(|phrase| normalised(phrase)).any(|phrase| !phrase.is_empty() && holds_whole(&plain, &phrase))
}

/// Takes the citations `[2]`, `[1, 3]`, `【2】` out of a text; their numbers in order, each once.
pub(crate) fn split_citations(text: &str) -> (String, Vec<usize>) {
    let mut rest = text;
    let (mut without, mut cited) = (String::with_capacity(text.len()), Vec::new());
    while let Some(open) = rest.find(['[', '【', '［']) {
        let bracket = rest[open..].chars().next().map_or(0, char::len_utf8);
        let inside = &rest[open + bracket..];
        let close = inside.find([']', '】', '］']);
        let numbers = close.and_then(|close| citation_numbers(&inside[..close]));
        match (close, numbers) {
            (Some(close), Some(numbers)) => {
                without.push_str(&rest[..open]);
                without.push(' ');
                cited.extend(numbers);
                let closing = inside[close..].chars().next().map_or(0, char::len_utf8);
                rest = &inside[close + closing..];
            }
            _ => {
                without.push_str(&rest[..open + bracket]);
                rest = inside;
            }
        }
    }
    without.push_str(rest);
    let mut seen = std::collections::BTreeSet::new();
    cited.retain(|number| seen.insert(*number));
    (without, cited)
}

fn citation_numbers(inside: &str) -> Option<Vec<usize>> {
    let even: String = inside.chars().map(even_width).collect();
    // Seven digits fit every document count; longer ones are no citation.
    let number = |part: &str| part.trim().parse::<usize>().ok().filter(|number| *number < 10_000_000);
    even.split([',', ';', '、']).map(number).collect()
}

/// The first line that holds more than punctuation, without the punctuation around it.
fn first_value_line(text: &str) -> &str {
    let outside = |letter: char| letter.is_whitespace() || (is_punctuation(letter) && !"()（）-+#%".contains(letter));
    text.lines().map(|line| line.trim_matches(outside)).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Evens out what does not change a value: full-width letters, case, punctuation, articles, white space.
///
/// Full-width ASCII becomes ASCII; letters become lower case; punctuation becomes a space, except a decimal point, a minus sign, and `+`, `#`
/// or `%` right after a word; the thousands comma and the apostrophe vanish; `a`, `an`, `the` vanish unless nothing else is left.
pub(crate) fn normalised(text: &str) -> String {
    let letters: Vec<char> = text.chars().map(even_width).flat_map(char::to_lowercase).collect();
    let digit_at = |index: Option<usize>| index.and_then(|index| letters.get(index)).is_some_and(char::is_ascii_digit);
    let mut even = String::with_capacity(text.len());
    for (index, letter) in letters.iter().enumerate() {
        let (before, after) = (digit_at(index.checked_sub(1)), digit_at(index.checked_add(1)));
        let starts_word = index == 0 || !letters[index - 1].is_alphanumeric();
        match letter {
            '.' if before && after => even.push('.'),
            ',' if before && after => {}
            '-' | '\u{2212}' if after && starts_word => even.push('-'),
            '\'' | '\u{2019}' => {}
            // Part of a name or a number right after it: `C++`, `C#`, `50%`.
            '+' | '#' | '%' if even.ends_with(|last: char| last.is_alphanumeric() || last == *letter) => even.push(*letter),
            letter if is_punctuation(*letter) || letter.is_whitespace() => even.push(' '),
            letter => even.push(*letter),
        }
    }
    let words: Vec<&str> = even.split_whitespace().collect();
    let kept: Vec<&str> = words.iter().copied().filter(|word| !matches!(*word, "a" | "an" | "the")).collect();
    if kept.is_empty() { words.join(" ") } else { kept.join(" ") }
}

fn even_width(letter: char) -> char {
    match letter {
        '\u{3000}' => ' ',
        // The full-width block repeats ASCII from `!` to `~` at this distance.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        _ => letter,
    }
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation()
        || matches!(letter, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{301F}' | '\u{FF01}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}' | '\u{FF3B}'..='\u{FF40}' | '\u{FF5B}'..='\u{FF65}' | '·' | '«' | '»' | '¿' | '¡')
}

/// Whether the normalised text holds the normalised value as a whole: `7` is not in `17`, but `泰语` is in `用泰语回复`.
pub(crate) fn contains_value(text: &str, value: &str) -> bool {
    let value = normalised(value);
    !value.is_empty() && holds_whole(&normalised(text), &value)
}

/// As [`contains_value`], for texts that are normalised already.
pub(crate) fn holds_whole(text: &str, value: &str) -> bool {
    let blocks = |outer: Option<char>, inner: Option<char>| {
        outer
            .is_some_and(|outer| is_word_letter(outer) || (matches!(outer, '.' | '-') && inner.is_some_and(|inner| inner.is_ascii_digit())))
            && inner.is_some_and(is_word_letter)
    };
    text.match_indices(value).any(|(start, found)| {
        let (before, after) = (text[..start].chars().next_back(), text[start + found.len()..].chars().next());
        !blocks(before, found.chars().next()) && !blocks(after, found.chars().next_back())
    })
}

/// A letter that belongs to a word written with spaces around it; Chinese and Japanese characters do not.
fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric()
        && !matches!(letter, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// A decimal number as its sign, its digits without leading zeros and those after the point without trailing zeros: exact at any length,
/// where a float takes two long order numbers for one.
fn number(text: &str) -> Option<(bool, String, String)> {
    let plain = normalised(text);
    let digits = plain.strip_prefix('-').unwrap_or(&plain);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(part) {
        return None;
    }
    let (whole, part) = (whole.trim_start_matches('0').to_owned(), part.trim_end_matches('0').to_owned());
    let is_zero = whole.is_empty() && part.is_empty();
    Some((plain.starts_with('-') && !is_zero, whole, part))
}

fn choice_letter(answer: &str) -> Option<char> {
    let mut letters = answer.trim().chars();
    letters.next().filter(|letter| letters.next().is_none() && ('A'..='J').contains(letter))
}

/// The only letter that stands alone in an answer such as `(B)`, `B.` or `Answer: B`.
fn chosen_letter(value: &str) -> Option<char> {
    let mut alone = value.split(|letter: char| !letter.is_alphanumeric()).filter_map(choice_letter);
    alone.next().filter(|first| alone.all(|other| other == *first))
}

#[cfg(test)]
mod tests {
    use glassbox_record::Passage;

    use super::*;

    fn expected(answer: &str, aliases: &[&str]) -> Expected {
        let passage = |role, text: &str, value: Option<&str>| Passage { role, text: text.to_owned(), value: value.map(str::to_owned) };
        Expected {
            question: "What is the colour of Zorvex?".to_owned(),
            answer: answer.to_owned(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            passages: vec![
                passage(PassageRole::Distractor, "Talmin comes in amber.", Some("amber")),
                passage(PassageRole::Gold, &format!("Zorvex comes in {answer}."), None),
                passage(PassageRole::Distractor, "Every Brivex unit is finished in mint.", None),
            ],
        }
    }

    fn judged(text: &str, answer: &str, aliases: &[&str]) -> (Judgement, Option<Rung>) {
        let judged = judge(text, &expected(answer, aliases), &CheckSpec::default());
        (judged.judgement, judged.rung)
    }

    #[test]
    fn each_rung_decides_what_it_should() {
        use Judgement::{Abstained, Right, Unparsed, Wrong};
        for (text, answer, aliases, wanted) in [
            ("teal [2]", "teal", &[][..], (Right, Some(Rung::Exact))),
            ("[2] Teal.", "teal", &[], (Right, Some(Rung::Normalised))),
            ("ＴＥＡＬ【2】", "teal", &[], (Right, Some(Rung::Normalised))),
            ("1,234.0 [1]", "1234", &[], (Right, Some(Rung::Number))),
            ("1235", "1234", &[], (Wrong, None)),
            ("-0.50", "-.5", &[], (Wrong, None)),
            ("-0.50", "-0.5", &[], (Right, Some(Rung::Number))),
            ("20261130000000017", "20261130000000018", &[], (Wrong, None)),
            ("teal", "B", &["teal"], (Right, Some(Rung::Alias))),
            ("It is teal.", "B", &["teal"], (Right, Some(Rung::Contained))),
            ("12.0", "7", &["a dozen", "12"], (Right, Some(Rung::Alias))),
            ("C#", "C++", &[], (Wrong, None)),
            ("C", "C++", &[], (Wrong, None)),
            ("c++", "C++", &[], (Right, Some(Rung::Normalised))),
            ("50", "50%", &[], (Wrong, None)),
            ("-5", "5", &[], (Wrong, None)),
            ("(B) [2]", "B", &[], (Right, Some(Rung::Normalised))),
            ("Answer: B", "B", &[], (Right, Some(Rung::Choice))),
            ("A or B", "B", &[], (Wrong, None)),
            ("blue-green", "teal", &["Blue green"], (Right, Some(Rung::Alias))),
            ("The colour is teal [2].", "teal", &[], (Right, Some(Rung::Contained))),
            ("它是青色的 [2]。", "青色", &[], (Right, Some(Rung::Contained))),
            ("It is number 17.", "7", &[], (Wrong, None)),
            ("I do not know.", "teal", &[], (Abstained, None)),
            ("不知道。", "teal", &[], (Abstained, None)),
            ("The documents do not contain the answer.", "teal", &[], (Abstained, None)),
            ("", "teal", &[], (Unparsed, None)),
            ("[2]", "teal", &[], (Unparsed, None)),
            ("...\n\n[1]", "teal", &[], (Unparsed, None)),
            ("olive", "teal", &[], (Wrong, None)),
        ] {
            assert_eq!(judged(text, answer, aliases), wanted, "`{text}` against `{answer}`");
        }
    }

    #[test]
    fn an_answer_that_names_two_documents_is_wrong() {
        let judged = judge("teal or amber [2]", &expected("teal", &[]), &CheckSpec::default());
        assert_eq!(judged.judgement, Judgement::Wrong);
        assert_eq!(judged.note.as_deref(), Some("names the right value and also that of document 1"));
    }

    #[test]
    fn an_essay_is_no_value() {
        assert_eq!(judged(&"teal and so on ".repeat(20), "teal", &[]).0, Judgement::Unparsed);
    }

    #[test]
    fn a_stricter_suite_refuses_the_looser_rungs() {
        let judged = |text: &str, accept| judge(text, &expected("teal", &[]), &CheckSpec { accept, abstain: vec![] }).judgement;
        assert_eq!(judged("Teal", Accept::Exact), Judgement::Wrong);
        assert_eq!(judged("Teal", Accept::Normalised), Judgement::Right);
        assert_eq!(judged("It is teal", Accept::Normalised), Judgement::Wrong);
    }

    #[test]
    fn a_wrong_answer_tells_which_document_captured_it() {
        let judged = |text: &str| judge(text, &expected("teal", &[]), &CheckSpec::default());
        assert_eq!(judged("amber [1]").captured_by, Some(1));
        assert_eq!(judged("mint [3]").captured_by, Some(3), "its value is not known, but no other document has the word");
        assert_eq!(judged("olive [1]").captured_by, None);
    }

    #[test]
    fn an_answer_is_grounded_where_its_value_stands_in_a_cited_document() {
        let grounded = |text: &str| judge(text, &expected("teal", &[]), &CheckSpec::default()).grounded;
        assert_eq!(grounded("teal [2]"), Some(true));
        assert_eq!(grounded("teal [1]"), Some(false));
        assert_eq!(grounded("teal [1, 2]"), Some(true));
        assert_eq!(grounded("amber [1]"), Some(true), "grounded, though wrong");
        assert_eq!(grounded("teal [9]"), Some(false));
        assert_eq!(grounded("teal [0]"), Some(false));
        assert_eq!(grounded("teal"), None);
        assert_eq!(grounded("I do not know."), None);
    }

    #[test]
    fn citations_are_taken_out_and_other_brackets_stay() {
        for (text, without, cited) in [
            ("teal [2]", "teal  ", &[2][..]),
            ("[1][3] teal【4】", "   teal ", &[1, 3, 4]),
            ("teal [1, 3；2]", "teal  ", &[1, 3, 2]),
            ("teal [2] [2]", "teal    ", &[2]),
            ("list[a] [b", "list[a] [b", &[]),
            ("[99999999999]", "[99999999999]", &[]),
        ] {
            assert_eq!(split_citations(text), (without.to_owned(), cited.to_vec()), "`{text}`");
        }
    }

    #[test]
    fn normalising_keeps_decimal_points_minus_signs_and_a_lonely_article() {
        for (text, wanted) in [
            ("The  Colour,  TEAL!", "colour teal"),
            ("3.50 metres.", "3.50 metres"),
            ("-5 or 5-7", "-5 or 5 7"),
            ("1,234,567", "1234567"),
            ("A", "a"),
            ("don\u{2019}t", "dont"),
            ("（青色）。", "青色"),
        ] {
            assert_eq!(normalised(text), wanted, "`{text}`");
        }
    }
}
