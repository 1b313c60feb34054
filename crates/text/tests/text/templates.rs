//! Chat templates: the text that `transformers` renders, and the limits.

use glassbox_text::{ChatTemplate, CivilTime, Ending, Error, Message, Piece, RenderOptions};
use serde_json::{Map, Value};

pub(crate) const NOW: CivilTime = CivilTime { year: 2024, month: 7, day: 4, hour: 15, minute: 5, second: 9 };

fn message(value: &Value) -> Message {
    let mut fields: Map<String, Value> = value.as_object().expect("an object").clone();
    let role = fields.shift_remove("role").and_then(|role| role.as_str().map(str::to_owned)).expect("a role");
    let content = fields.shift_remove("content");
    let pieces = content.map(|content| Piece::text(content.as_str().expect("a text"))).into_iter().collect();
    Message { role, pieces, fields }
}

#[test]
fn rendered_text_equals_that_of_transformers() {
    let golden: Value = serde_json::from_str(include_str!("../../fixtures/templates.json")).expect("the script wrote it");
    let variables = golden["variables"].as_object().expect("an object");
    let mut wrong = Vec::new();
    let cases = golden["cases"].as_array().expect("a list");
    for case in cases {
        let name = case["name"].as_str().expect("a name");
        let messages: Vec<Message> = case["messages"].as_array().expect("a list").iter().map(message).collect();
        let options = RenderOptions {
            ending: match case["ending"].as_str() {
                Some("answer") => Ending::Answer,
                Some("continue") => Ending::Continue,
                _ => Ending::Closed,
            },
            tools: Some(case["tools"].clone()).filter(|tools| !tools.is_null()),
            variables: case["variables"].as_object().expect("an object").clone(),
            now: Some(NOW),
            ..RenderOptions::default()
        };
        let template = case["template"].as_str().expect("a template");
        let found = ChatTemplate::compile("golden", template, variables.clone()).and_then(|template| template.render(&messages, &options));
        let agrees = match (&found, case.get("text"), case.get("error")) {
            (Ok(found), Some(text), _) => found == text.as_str().expect("a text"),
            (Err(Error::TemplateRaised(found)), _, Some(error)) => found == error.as_str().expect("a text"),
            (Err(Error::Request { .. }), _, Some(error)) => error.as_str().is_some_and(|error| error.starts_with("continue_final_message")),
            _ => false,
        };
        if !agrees {
            wrong.push(format!("{name}: {template:.90}\n  wanted {:?}{:?}\n  found  {found:?}", case.get("text"), case.get("error")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn render(source: &str, options: &RenderOptions) -> Result<String, Error> {
    let messages = [Message::new("user", vec![Piece::text("hi")])];
    ChatTemplate::compile("test", source, Map::new())?.render(&messages, options)
}

#[test]
fn the_words_of_raise_exception_surface() {
    let error = render("{{ raise_exception('roles must alternate') }}", &RenderOptions::default()).expect_err("it raises");
    assert_eq!(error, Error::TemplateRaised("roles must alternate".to_owned()));
    let inner = "{% macro f() %}{{ raise_exception('deep') }}{% endmacro %}{% for m in messages %}{{ f() }}{% endfor %}";
    assert_eq!(render(inner, &RenderOptions::default()), Err(Error::TemplateRaised("deep".to_owned())));
}

#[test]
fn a_date_without_a_clock_is_an_error() {
    assert_eq!(render("{{ strftime_now('%Y') }}", &RenderOptions::default()), Err(Error::NoClock));
    let options = RenderOptions { now: Some(NOW), ..RenderOptions::default() };
    assert_eq!(render("{{ strftime_now('%d %b %Y %H:%M:%S') }}", &options).as_deref(), Ok("04 Jul 2024 15:05:09"));
    let error = render("{{ strftime_now('%Q') }}", &options).expect_err("no such directive");
    assert!(error.to_string().contains("`%Q`"), "{error}");
}

#[test]
fn a_tag_that_is_cut_off_is_an_error_and_never_a_panic() {
    for source in
        ["{%}", "{%", "a{%}b{%}", "{%%}", "{%-%}", "{% generation", "{%} {{ x }} %}", "é{%}é", "{% for m in messages %}{%}endfor %}"]
    {
        let rendered = render(source, &RenderOptions::default());
        assert!(matches!(rendered, Err(Error::Template { .. })), "{source}: {rendered:?}");
    }
}

#[test]
fn a_tag_that_is_only_text_leaves_what_stands_before_it_alone() {
    assert_eq!(render("once {{ '{%' }}", &RenderOptions::default()).expect("renders"), "once {%");
    assert_eq!(render("{% generation %}a{% endgeneration %} {{ '{%' }} b", &RenderOptions::default()).expect("renders"), "a {% b");
}

#[test]
fn hostile_templates_end_at_a_named_limit() {
    let limit = |source: &str| match render(source, &RenderOptions::default()) {
        Err(Error::TemplateLimit { limit, .. }) => limit.to_owned(),
        other => format!("{other:.200?}"),
    };
    assert_eq!(limit("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}"), "fuel");
    assert_eq!(limit("{{ 'A' * 1000000000 }}"), "fuel");
    assert_eq!(limit("{% for i in range(10000) %}{{ 'A' * 2000 }}{% endfor %}"), "output size");
    assert_eq!(limit("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "nesting");
    assert_eq!(limit(&format!("{}{}", "{% if true %}".repeat(200), "{% endif %}".repeat(200))), "nesting");
    assert_eq!(limit(&"(".repeat(1_000).replacen('(', "{{ (", 1)), "nesting");
    assert_eq!(limit(&"x".repeat(2 << 20)), "source size");
    assert_eq!(limit("{% set ns = namespace(s='a') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"), "fuel");
    assert_eq!(limit("{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"), "fuel");
    assert_eq!(limit("{% for i in range(99999) %}{% set s = [1] * 9999 %}{% endfor %}"), "fuel");
    // More than 100 000 numbers are refused by Python's sandbox as well.
    assert!(matches!(render("{% for i in range(10000000) %}x{% endfor %}", &RenderOptions::default()), Err(Error::Template { .. })));
}

#[test]
fn no_template_overflows_the_stack_or_allocates_a_width() {
    let refused = |source: &str| render(source, &RenderOptions::default()).expect_err("hostile").to_string();
    for chain in ["-", "not ", "1+", "x.", "''|upper~", "x[0]+", "a if b else ", "x and "] {
        let source = format!("{{{{ {}1 }}}}", chain.repeat(50_000));
        assert!(refused(&source).contains("length of a tag"), "{chain}");
    }
    assert!(refused(&format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(20_000))).contains("length of a tag"));
    // As long as a tag may be, and no longer.
    let most = "-".repeat(1_990);
    assert!(render(&format!("{{{{ {most}1 }}}}"), &RenderOptions::default()).is_ok());
    let branches = format!("{{% if 0 %}}{}{{% else %}}x{{% endif %}}", "{% elif 0 %}".repeat(2_000));
    assert_eq!(render(&branches, &RenderOptions::default()).as_deref(), Ok("x"));
    for source in [
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
        "{% set ns = namespace() %}{% set ns.a = [{'b': ns}] %}{{ ns ~ '' }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(20000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(20000) %}{% set ns.a = [] + [ns.a] %}{% endfor %}{{ ns.a|string }}",
        &format!("{{% set x = 1 %}}{}{{{{ x }}}}", "{% set x = {'a': x} %}".repeat(20_000)),
    ] {
        assert!(refused(source).contains("nesting"), "{source:.80}: {}", refused(source));
    }
    for (open, close) in [("{% with a=a+a %}", "{% endwith %}"), ("{% for a in [[a, a]] %}", "{% endfor %}")] {
        let source = format!("{{% set a = [1] %}}{}{{{{ (a == 1)|string }}}}{}", open.repeat(60), close.repeat(60));
        assert!(refused(&source).contains("fuel"), "{source:.80}: {}", refused(&source));
    }
    let doubling = "{% macro f(a) %}{{ f([a, a]) }}{% endmacro %}{{ f(1) }}";
    assert!(refused(doubling).contains("fuel") || refused(doubling).contains("nesting"), "{}", refused(doubling));
    assert!(refused("{% for m in [1] recursive %}{{ loop([m]) }}{% endfor %}").contains("line 1: recursive loops are not run"));
    for source in ["{{ '{:>1000000000}'.format(1) }}", "{{ '{:.999999999f}'.format(1.5) }}", "{{ '{0:01000000000}'.format(1) }}"] {
        assert!(refused(source).contains("4 digits"), "{source}");
    }
    assert_eq!(render("{{ 'In 2024 {:>3}{}'.format(1, 2) }}", &RenderOptions::default()).as_deref(), Ok("In 2024   12"));
    assert!(refused("{{ raise_exception('x' * 60000) }}").len() < 3_000);
}

#[test]
fn what_a_variable_holds_stays_what_it_was() {
    for (source, expected) in [
        ("{% set a, b = 1, 'x' %}{{ a }}{{ b }}", "1x"),
        ("{% set x = missing %}{{ x is defined }}{{ x }}", "False"),
        ("{% set m = messages[0] %}{{ m.content }}{{ m['role'] }}", "hiuser"),
        ("{% set m = [1] + [2] %}{{ m }}{{ m[1] }}{{ m|length }}", "[1, 2]22"),
        ("{% set m = 'abc'[::-1] %}{{ m }}{% set m = [1, 2, 3][::-1] %}{{ m }}", "cba[3, 2, 1]"),
        ("{% set ns = namespace(a=1) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "4"),
        ("{% set x = 'a' if false else 'b' -%}  {{ x }}", "b"),
        ("{% with a=1, b='x,y' %}{{ a }}{{ b }}{% endwith %}", "1x,y"),
        ("{% for a in [1, 2, 3] if a != 2 %}{{ a }}{{ loop.length }}{% endfor %}", "1232"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}{% for x in missing %}{{ x }}{% endfor %}", "a1"),
        ("{% macro f(a, b='d') -%}\n {{ a }}{{ b }}\n{%- endmacro %}{{ f(1) }}{{ f('x', b=2) }}", "1dx2"),
        ("{% macro f() %}<{{ caller() }}>{% endmacro %}{% set x %}{% call f() %}y{% endcall %}{% endset %}{{ x }}", "<y>"),
    ] {
        assert_eq!(render(source, &RenderOptions::default()).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn a_conversation_of_a_thousand_messages_stays_within_every_limit() {
    let golden: Value = serde_json::from_str(include_str!("../../fixtures/templates.json")).expect("the script wrote it");
    let cases = golden["cases"].as_array().expect("a list").iter();
    let variables = golden["variables"].as_object().expect("an object");
    let templates = cases.filter(|case| case["name"].as_str().is_some_and(|name| name.ends_with(", turns, closed")));
    let messages: Vec<Message> =
        (0..1_000).map(|turn| Message::new(["user", "assistant"][turn % 2], vec![Piece::text("what is it? ".repeat(20))])).collect();
    let mut rendered = 0;
    for case in templates {
        let template =
            ChatTemplate::compile("golden", case["template"].as_str().expect("a template"), variables.clone()).expect("it compiles");
        let text = template.render(&messages, &RenderOptions { now: Some(NOW), ..RenderOptions::default() });
        assert!(text.is_ok(), "{}: {text:?}", case["name"]);
        rendered += 1;
    }
    assert!(rendered >= 8, "{rendered}");
}

#[test]
fn a_syntax_error_has_its_line_and_an_unknown_function_its_name() {
    let error = render("a\nb {% if %}", &RenderOptions::default()).expect_err("a syntax error");
    assert!(error.to_string().starts_with("chat template `test` line 2:"), "{error}");
    let error = render("{{ nothing() }}", &RenderOptions::default()).expect_err("an unknown function");
    assert!(error.to_string().contains("nothing"), "{error}");
    let error = render("{% include 'x' %}", &RenderOptions::default()).expect_err("no other templates");
    assert!(error.to_string().contains('x'), "{error}");
}

#[test]
fn a_template_without_the_header_of_an_answer_says_so() {
    let knows = |source: &str| ChatTemplate::compile("test", source, Map::new()).expect("right").knows_generation_prompt();
    assert!(knows("{% if add_generation_prompt %}A:{% endif %}"));
    assert!(!knows("{{ messages[0].content }}"));
}

#[test]
fn a_conversation_needs_a_message() {
    let template = ChatTemplate::compile("test", "x", Map::new()).expect("right");
    assert!(matches!(template.render(&[], &RenderOptions::default()), Err(Error::Request { .. })));
}
