use glassbox_record::{FORMAT_VERSION, HeadSummary, InspectedModel, Inspection, NextTokenRow, PooledMap, PromptSpan, TokenText};
use glassbox_report::{Lang, inspection_html, inspection_png, inspection_svg, inspection_terminal};

use crate::page;

/// An inspection of a model of 6 layers with 4 heads, half of them drawn, whose every text is `text`; attention is uniform, which is
/// the most that a page can have to show.
pub(crate) fn inspection(text: &str, tokens: usize, cell_tokens: usize) -> Inspection {
    let edge = tokens.div_ceil(cell_tokens);
    let weight = |index: usize| if index % edge <= index / edge { 1.0 / (1 + index / edge) as f32 } else { 0.0 };
    let map = |number: usize| PooledMap {
        layer: number / 2,
        head: number % 2,
        why: text.to_owned(),
        cell_tokens,
        edge,
        weights: (0..edge * edge).map(weight).collect(),
        last_row: vec![1.0 / tokens as f32; tokens],
    };
    let head = |number: usize| HeadSummary {
        layer: number / 4,
        head: number % 4,
        normalised_entropy: Some(number as f64 / 24.0),
        sink_mass: 0.1,
        mean_distance_tokens: 3.0,
        last_row_span_mass: vec![0.25, 0.001],
    };
    let span = |name: &str| PromptSpan { name: name.to_owned(), first_token: 0, tokens: 1 };
    Inspection {
        format: Inspection::FORMAT.to_owned(),
        version: FORMAT_VERSION,
        model: InspectedModel { name: text.to_owned(), description: text.to_owned(), layers: 6, heads: 4, kv_heads: 2 },
        text: text.to_owned(),
        tokens: (0..tokens).map(|id| TokenText { id: id as u32, text: text.to_owned() }).collect(),
        spans: vec![span(text), span("question")],
        next: vec![NextTokenRow { id: 3, text: text.to_owned(), logit: 1.5, probability: 0.75 }],
        next_entropy_nats: Some(1.25),
        heads: (0..24).map(head).collect(),
        maps: (0..12).map(map).collect(),
    }
}

#[test]
fn every_part_is_on_the_page_in_both_languages() {
    for (lang, parts) in [
        (
            Lang::En,
            ["Next tokens", "1.250 nats", "2000 tokens", "12 of 24 heads are shown.", "Shown because: ", "the largest of 8 × 8 tokens"],
        ),
        (Lang::ZhCn, ["下一个词元", "1.250 奈特", "2000 个词元", "共 24 个注意力头，展示 12 个。", "展示原因：", "8 × 8 个词元中的最大值"]),
    ] {
        let page = inspection_html(&inspection("词", 2_000, 8), lang).expect("drawn");
        page::check(&page);
        for part in parts {
            assert!(page.contains(part), "`{part}` in {lang:?}");
        }
    }
}

#[test]
fn two_thousand_tokens_of_twelve_heads_fit_a_page_with_every_token_as_text() {
    let page = inspection_html(&inspection("\"<token>\"", 2_000, 8), Lang::En).expect("drawn");
    page::check(&page);
    let rows = page::tags(&page).iter().filter(|tag| tag.attributes.contains(&("class", "heat"))).count();
    assert_eq!(rows, 13, "the tokens, and the last row of each head");
}

#[test]
fn a_page_that_would_grow_too_large_says_what_is_left_out() {
    let page = inspection_html(&inspection("<><><><><><>", 15_000, 59), Lang::En).expect("drawn");
    page::check(&page);
    assert!(page.contains("more heads are left out here"));
    let page = inspection_html(&inspection("<", 20_500, 81), Lang::En).expect("drawn");
    page::check(&page);
    assert!(page.contains("500 more tokens are not written out here"));
}

#[test]
fn five_tokens_are_all_named_on_both_edges_of_every_map() {
    let svg = inspection_svg(&inspection("词元", 5, 1)).expect("drawn");
    assert_eq!(svg.matches(">词元</text>").count(), 12 * 2 * 5);
    assert!(svg.contains("12 of 24 heads; row: query, column: key<"));
}

#[test]
fn a_matrix_with_another_size_than_its_tokens_is_refused_with_layer_and_head() {
    let mut wrong = inspection("a", 9, 1);
    wrong.maps[3].last_row.pop();
    for error in [inspection_html(&wrong, Lang::En).err(), inspection_svg(&wrong).err()] {
        let error = error.expect("refused").to_string();
        assert!(error.contains("layer 1, head 1") && error.contains("wanted 9 for 9 tokens, found 8"), "{error}");
    }
}

#[test]
fn a_terminal_shows_the_ends_of_a_long_prompt() {
    let text = inspection_terminal(&inspection("ab", 2_000, 8), Lang::En, 80);
    assert!(text.contains("… 1760 …"), "{text}");
    assert!(text.lines().filter(|line| line.contains('|')).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_prompt_of_one_token_says_that_there_is_nothing_to_measure() {
    let mut one = inspection("a", 1, 1);
    for head in &mut one.heads {
        head.normalised_entropy = None;
    }
    let page = inspection_html(&one, Lang::En).expect("drawn");
    page::check(&page);
    assert!(page.contains("there is nothing to measure") && !page.contains("0 looks at one token"), "{page}");
    let text = inspection_terminal(&one, Lang::En, 80);
    assert!(text.contains("there is nothing to measure") && !text.contains("layer   0"), "{text}");
}

#[test]
fn numbers_beside_a_token_written_from_right_to_left_stay_in_their_place() {
    let page = inspection_html(&inspection("שלום", 60, 1), Lang::En).expect("drawn");
    page::check(&page);
    for part in
        ["The last row reads most: \u{2068}שלום\u{2069} (0) 2 %", "unicode-bidi: isolate", "title=\"0: \u{2068}שלום\u{2069} (id 0)\""]
    {
        assert!(page.contains(part), "`{part}`");
    }
    let svg = inspection_svg(&inspection("שלום", 2_000, 8)).expect("drawn");
    assert!(svg.contains(">\u{2068}שלום\u{2069} 0</text>"), "a tick has its number after its token");
    // The embedded font has Hebrew, and what only gives a direction needs no font.
    assert_eq!(inspection_png(&inspection("שלום", 100, 1)).expect("drawn").warnings, Vec::<String>::new());
}

#[test]
fn an_inspection_without_maps_or_spans_is_still_a_page() {
    let mut bare = inspection("a", 3, 1);
    bare.maps.clear();
    bare.spans.clear();
    let page = inspection_html(&bare, Lang::En).expect("drawn");
    page::check(&page);
    assert!(page.contains("No head was drawn.") && !page.contains("By head"));
    page::check(&page);
    inspection_svg(&bare).expect("an empty sheet");
}

#[test]
fn a_picture_shows_the_cells_of_small_and_of_large_maps() {
    for (tokens, cell) in [(5, 1), (60, 1), (2_000, 8)] {
        let mut one = inspection("a", tokens, cell);
        one.maps.truncate(1);
        let png = inspection_png(&one).expect("drawn").png;
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
        let frame = reader.next_frame(&mut pixels).expect("a frame");
        // Nothing but cells and the colour scale is neither grey nor white; the scale has 4 × 9 × 200 pixels.
        let coloured = pixels[..frame.buffer_size()].chunks(4).filter(|pixel| pixel[0].abs_diff(pixel[2]) > 20).count();
        assert!(coloured > 15_000, "{coloured} coloured pixels with {tokens} tokens");
    }
}
