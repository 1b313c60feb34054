//! Sentences that a record holds in English, in the reader's language where they are known.

/// One sentence a line: English, a tab, Chinese. `#` stands for a number; numbers keep their order.
const CHINESE: &str = include_str!("../locales/zh-CN.known.tsv");

/// The Chinese of an English sentence of the record; none where it is not in the table.
pub(crate) fn in_chinese(english: &str) -> Option<String> {
    let (pattern, numbers) = without_numbers(english);
    let (_, chinese) = CHINESE.lines().filter_map(|line| line.split_once('\t')).find(|(known, _)| *known == pattern)?;
    let mut numbers = numbers.into_iter();
    let mut text = String::new();
    for character in chinese.chars() {
        match character {
            '#' => text.push_str(&numbers.next().unwrap_or_default()),
            _ => text.push(character),
        }
    }
    Some(text)
}

/// The sentence with `#` for each number, and the numbers. A point belongs to a number when a digit follows.
fn without_numbers(text: &str) -> (String, Vec<String>) {
    let (mut pattern, mut numbers, mut number) = (String::new(), Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let point = character == '.' && !number.is_empty() && characters.peek().is_some_and(char::is_ascii_digit);
        if character.is_ascii_digit() || point {
            number.push(character);
            continue;
        }
        if !number.is_empty() {
            pattern.push('#');
            numbers.push(std::mem::take(&mut number));
        }
        pattern.push(character);
    }
    if !number.is_empty() {
        pattern.push('#');
        numbers.push(number);
    }
    (pattern, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_carried_over_in_order() {
        assert_eq!(in_chinese("document 12").as_deref(), Some("资料 12"));
        let why = "it gave `document 3` 37 percentage points more than its uniform share";
        assert_eq!(in_chinese(why).as_deref(), Some("它给“资料 3”的注意力比均匀分配多 37 个百分点"));
        assert_eq!(in_chinese("a sentence that nobody translated"), None);
    }

    #[test]
    fn every_line_is_a_pair_and_carries_each_number_once() {
        let mut seen = Vec::new();
        for line in CHINESE.lines() {
            let (english, chinese) = line.split_once('\t').unwrap_or_else(|| panic!("no tab: {line}"));
            assert_eq!(english.matches('#').count(), chinese.matches('#').count(), "{line}");
            assert!(!seen.contains(&english), "twice: {english}");
            assert_eq!(without_numbers(english).0, english, "a number is written `#`");
            seen.push(english);
        }
    }
}
