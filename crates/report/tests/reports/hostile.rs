use glassbox_report::{Lang, inspection_html, inspection_png, inspection_svg, inspection_terminal};
use resvg::usvg::roxmltree::Document;

use crate::build::Building;
use crate::inspection::inspection;
use crate::page;

/// Texts that want to be something else: markup, attributes, scripts, style, templates, XML, terminal commands.
const HOSTILE: [&str; 10] = [
    "\"><img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "a<b<c",
    "' onmouseover='alert(1)",
    "</style></title><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% include \"/etc/passwd\" %}{ $count }",
    "]]><!-- & &lt; &#x3c;script&#x3e; -->",
    "`<b>` `<i>",
    "\u{0}\u{1}\u{8}\u{b}\u{1b}[2J\u{7f}\u{9b}31m\u{fffe}\u{202e}\u{200b}",
    "url(http://example.org/x) @import 'http://example.org'; src=//example.org",
];

/// The texts in three portions: a portion is as hostile as its worst part.
fn portions() -> Vec<String> {
    HOSTILE.chunks(4).map(|texts| texts.join("\n")).collect()
}

#[test]
fn no_text_of_a_run_becomes_markup_or_steers_a_terminal() {
    for text in portions() {
        let run = Building { text: text.clone(), ..Building::default() }.build().load().expect("finished");
        for lang in [Lang::En, Lang::ZhCn] {
            let html = run.html(lang).expect("drawn");
            page::check(&html);
            assert!(html.contains(&page::escaped(&text)), "`{text}` is shown as it is");
            check_terminal(&run.terminal_summary(lang, 100));
        }
        let json = serde_json::to_string(&run.json()).expect("JSON");
        let again: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(again["wrong_answers"][0]["answered"], text);
        check_junit(&run.junit().expect("written"));
    }
}

fn check_junit(xml: &str) {
    let forbidden = |character: char| (character.is_control() && character != '\n') || character == '\u{fffe}';
    assert!(!xml.contains(forbidden), "{xml:?}");
    let document = Document::parse(xml).unwrap_or_else(|error| panic!("{error} in {xml}"));
    let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!([count("testsuite"), count("testcase"), count("failure"), count("skipped")], [1, 4, 1, 2], "{xml}");
    let suites = document.root_element();
    assert_eq!(["tests", "failures", "skipped"].map(|name| suites.attribute(name)), [Some("4"), Some("1"), Some("2")], "{xml}");
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).and_then(|node| node.text()).expect("a text");
    for part in ["threshold: at least 0.7", "value: 0.500", "0.400 … 0.600 (95 %, Wilson)", "n: 80", "wrong: "] {
        assert!(failure.contains(part), "`{part}` in {failure}");
    }
}

#[test]
fn no_token_or_name_of_an_inspection_becomes_markup_or_steers_a_terminal() {
    for text in HOSTILE {
        for (tokens, cell) in [(3, 1), (401, 8)] {
            let inspection = inspection(text, tokens, cell);
            page::check(&inspection_html(&inspection, Lang::ZhCn).expect("drawn"));
            check_terminal(&inspection_terminal(&inspection, Lang::En, 100));
            let svg = inspection_svg(&inspection).expect("drawn");
            let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{error}"));
            let elements: Vec<&str> = document.descendants().filter(|node| node.is_element()).map(|node| node.tag_name().name()).collect();
            assert!(elements.iter().all(|name| ["svg", "g", "rect", "text", "title", "image", "path"].contains(name)), "{elements:?}");
        }
    }
    let picture = inspection_png(&inspection(&HOSTILE.concat(), 2, 1)).expect("drawn");
    assert!(picture.png.starts_with(b"\x89PNG"));
}

fn check_terminal(text: &str) {
    assert!(!text.contains(|character: char| character.is_control() && character != '\n'), "{text:?}");
    assert!(!text.contains('\u{202e}'), "{text:?}");
}
