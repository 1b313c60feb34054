//! A reader of pages strict enough to see whether text became markup.

/// An element's start: its name, and its attributes with their values as written.
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    pub(crate) attributes: Vec<(&'a str, &'a str)>,
}

/// Elements that reports are made of.
const KNOWN: [&str; 48] = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "main",
    "section",
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "div",
    "span",
    "strong",
    "small",
    "code",
    "bdi",
    "br",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "dl",
    "dt",
    "dd",
    "ol",
    "ul",
    "li",
    "figure",
    "figcaption",
    "svg",
    "g",
    "rect",
    "text",
    "line",
    "path",
    "circle",
    "image",
    "!DOCTYPE",
    "b",
    "desc",
];

/// Asserts that the page is well nested, holds only known elements, loads nothing, runs nothing, and is small enough to travel.
pub(crate) fn check(page: &str) {
    assert!(page.len() <= 10 << 20, "{} bytes", page.len());
    assert!(
        page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"")
    );
    for tag in tags(page) {
        assert!(KNOWN.contains(&tag.name), "unknown element `{}`", tag.name);
        for (name, value) in &tag.attributes {
            assert!(!name.starts_with("on") && *name != "src", "`{name}` on `{}`", tag.name);
            assert!(*name != "href" || value.starts_with("data:image/png;base64,"), "`{value}`");
            assert!(*name != "style" || !value.contains("url("), "`{value}`");
            assert!(*name == "xmlns" || !value.starts_with("http"), "`{name}` is `{value}`");
        }
    }
    let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("a style sheet");
    assert!(!style.contains("@import") && !style.contains("url("), "the style sheet loads something");
}

/// Every element of the page; panics where elements are not well nested.
pub(crate) fn tags(page: &str) -> Vec<Tag<'_>> {
    let (mut open, mut all, mut rest) = (Vec::new(), Vec::new(), page);
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let inside = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "`</{name}>` closes what is open");
            continue;
        }
        let name = inside.split([' ', '/']).next().unwrap_or_default();
        all.push(Tag { name, attributes: attributes(&inside[name.len()..]) });
        if !inside.ends_with('/') && !["!DOCTYPE", "meta", "br"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    all
}

fn attributes(text: &str) -> Vec<(&str, &str)> {
    let (mut all, mut rest) = (Vec::new(), text.trim_start());
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, next) = after.split_once('"').expect("an attribute is quoted");
        all.push((name.trim(), value));
        rest = next.trim_start();
    }
    let bare = rest.trim_end_matches('/').trim();
    assert!(["", "open", "html"].contains(&bare), "stray text in a tag: `{bare}`");
    all
}

/// Text as it must stand in a page.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;").replace('"', "&#34;").replace('\'', "&#39;")
}
