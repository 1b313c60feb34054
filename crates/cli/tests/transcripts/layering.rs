//! `inspect --layers`.

use serde_json::Value;

use crate::desk::Desk;

const PROMPT: &str =
    "Documents:\n[1] The colour of Zorvex is amber.\n[2] Daxdor is painted teal.\n\nQuestion: What is the colour of Zorvex?";

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

#[test]
fn the_parts_add_up_to_the_logit_and_heads_to_their_layer() {
    let desk = Desk::new();
    for more in [&[][..], &["--answer", "teal"], &["--answer", "amber", "--against", "teal"]] {
        let args = [&["inspect", "--chat", PROMPT, "--layers", "--json", "--activations", "exact"], more].concat();
        let document = desk.json(&args);
        assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-layers"), Some(1)));
        let parts = &document["parts"];
        let (attention, feed_forward) = (numbers(&parts["attention"]), numbers(&parts["feed_forward"]));
        let sum = number(&parts["embedding"]) + number(&parts["constant"]) + attention.iter().chain(&feed_forward).sum::<f64>();
        assert!((sum - number(&document["logit"])).abs() < 1e-3, "{more:?}: {parts}");
        for (layer, wanted) in attention.iter().enumerate() {
            let heads = numbers(&parts["heads"][layer]).iter().sum::<f64>() + number(&parts["attention_bias"][layer]);
            assert!((heads - wanted).abs() < 1e-3, "{more:?}, layer {layer}: {heads} for {wanted}");
        }
    }
}

#[test]
fn the_last_layer_says_what_the_model_says() {
    let desk = Desk::new();
    let document = desk.json(&["inspect", "--chat", PROMPT, "--layers", "--json", "--top", "3"]);
    let whole = desk.json(&["inspect", "--chat", PROMPT, "--json", "--top", "3"]);
    let last = document["layers"].as_array().and_then(|layers| layers.last()).expect("layers");
    assert_eq!(number(&last["kl_to_end_nats"]), 0.0);
    assert_eq!(last["rank"].as_u64(), Some(1));
    for (found, wanted) in last["next"].as_array().expect("a list").iter().zip(whole["next"].as_array().expect("a list")) {
        assert_eq!((&found["id"], &found["probability"]), (&wanted["id"], &wanted["probability"]));
    }
}

#[test]
fn the_table_reads_from_the_embedding_to_the_answer() {
    let desk = Desk::new();
    let told = desk.ok(&["inspect", "--chat", PROMPT, "--layers", "--activations", "exact"]);
    let lines: Vec<&str> = told.lines().collect();
    let row =
        |name: &str| lines.iter().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_else(|| panic!("{name}:\n{told}"));
    for name in ["embedding", "0", "1", "2"] {
        assert!(!row(name).is_empty());
    }
    assert!(told.contains("heads that gave most"), "{told}");
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    let desk = Desk::new();
    desk.refuses(&["inspect", "x", "--answer", "y"], 2, &["--layers"]);
    desk.refuses(&["inspect", "x", "--layers", "--html", "x.html"], 2, &["--layers", "--html"]);
    desk.refuses(&["inspect", "x", "--layers", "--answer", ""], 2, &["at least one token"]);
}
