//! `inspect`.

use safetensors::SafeTensors;

use crate::desk::{Desk, tiny};

/// Every family, with and without a twin in GGUF; none has a tokenizer.
const TINY: [&str; 6] = ["llama-mha", "llama-gqa/model.gguf", "qwen2-window", "qwen2-gqa/model.gguf", "gemma3-gqa", "gpt2/model.gguf"];

#[test]
fn the_terminal_shows_tokens_next_tokens_and_every_head() {
    let desk = Desk::new();
    let told = desk.run(&["inspect", "hello world", "--top", "3"]);
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    for part in ["specimen: llama", "Next tokens", "Entropy of every head", "layer   0", "layer   2"] {
        assert!(told.out.contains(part), "`{part}` is missing in\n{}", told.out);
    }
    assert!(told.out.lines().all(|line| line.trim_end() == line), "blanks at the end of a line:\n{}", told.out);
}

#[test]
fn the_document_is_complete_and_its_numbers_are_possible() {
    let desk = Desk::new();
    for name in TINY {
        let document = desk.json(&["inspect", "-m", &tiny(name), "--ids", "1,5,9,2,7,3,1,5", "--json", "--top", "4"]);
        assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-inspection"), Some(1)), "{name}");
        let list = |key: &str| document[key].as_array().unwrap_or_else(|| panic!("{name} has no {key}"));
        let of_model = |key: &str| document["model"][key].as_u64().expect("a number") as usize;
        assert_eq!((list("tokens").len(), list("next").len()), (8, 4), "{name}");
        assert_eq!(list("heads").len(), of_model("layers") * of_model("heads"), "{name}");
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        let shares: f64 = list("next").iter().map(|next| number(&next["probability"])).sum();
        assert!(shares > 0.0 && shares <= 1.0 && number(&document["next_entropy_nats"]) > 0.0, "{name}");
        for head in list("heads") {
            assert!((0.0..=1.0 + 1e-6).contains(&number(&head["normalised_entropy"])), "{name}: {head}");
        }
        for map in list("maps") {
            let total: f64 = map["last_row"].as_array().expect("weights").iter().map(number).sum();
            assert!((total - 1.0).abs() < 1e-5, "{name}: a row of attention sums to {total}");
        }
    }
}

#[test]
fn a_folder_and_its_twin_in_gguf_show_the_same_next_tokens() {
    let desk = Desk::new();
    for name in ["llama-gqa", "llama-scaled", "gemma3-mqa", "gpt2"] {
        let next = |model: &str| desk.json(&["inspect", "-m", model, "--ids", "3,1,4,1,5,9,2,6", "--json"])["next"][0]["id"].clone();
        assert_eq!(next(&tiny(name)), next(&tiny(&format!("{name}/model.gguf"))), "{name}");
    }
}

#[test]
fn pages_and_pictures_are_written_whole_and_without_a_word_on_standard_output() {
    let desk = Desk::new();
    let told = desk.run(&["inspect", "hello world", "--html", "look.html", "--png", "look.png", "--svg", "look.svg", "--heads", "1.0,2.3"]);
    assert_eq!((told.code, told.out.as_str()), (0, ""));
    assert_eq!(told.err, "wrote look.html\nwrote look.svg\nwrote look.png\n");
    let page = desk.text("look.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "the page is cut");
    assert!(
        !page.contains("http://") && !page.contains("https://") || page.contains("http://www.w3.org"),
        "the page wants something from outside"
    );
    assert!(desk.text("look.svg").trim_end().ends_with("</svg>"));
    let png = std::fs::read(desk.path("look.png")).expect("written");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xaeB`\x82"), "the picture is cut");
    assert_eq!(desk.names(), ["look.html", "look.png", "look.svg"]);
}

#[test]
fn sites_are_saved_under_their_names_with_the_axes_of_the_table() {
    let desk = Desk::new();
    // llama-gqa: 61 tokens of vocabulary, six heads over two kv heads of width 10.
    desk.ok(&[
        "inspect",
        "-m",
        &tiny("llama-gqa"),
        "--ids",
        "1,5,9,2",
        "--site",
        "logits,blocks.*.attn.pattern,blocks.1.attn.k",
        "--out",
        "acts.safetensors",
    ]);
    let bytes = std::fs::read(desk.path("acts.safetensors")).expect("written");
    let file = SafeTensors::deserialize(&bytes).expect("valid");
    let mut found: Vec<(String, Vec<usize>)> = file.tensors().into_iter().map(|(name, tensor)| (name, tensor.shape().to_vec())).collect();
    found.sort();
    let layers = found.iter().filter(|(name, _)| name.ends_with("attn.pattern")).count();
    let pattern = |layer: usize| (format!("blocks.{layer}.attn.pattern"), vec![6, 4, 4]);
    let mut wanted: Vec<(String, Vec<usize>)> = (0..layers).map(pattern).collect();
    wanted.push(("blocks.1.attn.k".to_owned(), vec![4, 2, 10]));
    wanted.push(("logits".to_owned(), vec![4, 61]));
    wanted.sort();
    assert_eq!(found, wanted);
    let values = |name: &str| -> Vec<f32> {
        let bytes = file.tensor(name).expect("there").data();
        bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes"))).collect()
    };
    for (row, weights) in values("blocks.0.attn.pattern").chunks_exact(4).enumerate() {
        let query = row % 4;
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "row {row} of [head, query]");
        assert!(weights[query + 1..].iter().all(|weight| *weight == 0.0), "query {query} looks into the future");
    }
    // The last row of the saved logits is what the terminal lists.
    let logits = values("logits");
    let best = (0..61).max_by(|a, b| logits[3 * 61 + a].total_cmp(&logits[3 * 61 + b])).expect("a vocabulary");
    let document = desk.json(&["inspect", "-m", &tiny("llama-gqa"), "--ids", "1,5,9,2", "--json"]);
    assert_eq!(document["next"][0]["id"].as_u64(), Some(best as u64));
    assert_eq!(desk.names(), ["acts.safetensors"]);
}

#[test]
fn a_star_alone_says_what_it_leaves_out() {
    let desk = Desk::new();
    let model = tiny("llama-gqa");
    let save = |sites: &str| desk.run(&["inspect", "-m", &model, "--ids", "1,5", "--site", sites, "--out", "acts.safetensors"]).err;
    let words = "`*` chooses the sites outside the blocks; `*,blocks.*.*` chooses all";
    assert!(save("*").contains(words));
    assert!(!save("*,blocks.*.*").contains(words) && !save("logits").contains(words));
}

#[test]
fn the_numbers_of_a_document_stand_in_rows() {
    let desk = Desk::new();
    let ids: Vec<String> = (0..471).map(|position| (300 + position * 37 % 2_000).to_string()).collect();
    let text = desk.ok(&["inspect", "--ids", &ids.join(","), "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let numbers: usize =
        document["maps"].as_array().expect("maps").iter().map(|map| map["weights"].as_array().expect("weights").len()).sum();
    // A number of f32 has at most 9 digits that say something, with sign, point, exponent and comma at most 16 characters.
    assert!(text.len() < 16 * numbers && text.lines().count() < 10_000, "{} bytes, {} lines", text.len(), text.lines().count());
    let compact = serde_json::to_string(&document).expect("JSON").len();
    assert!(text.len() < compact + compact / 10, "{} bytes instead of {compact}", text.len());
}

#[test]
fn one_token_has_no_entropy_to_measure() {
    let desk = Desk::new();
    let model = tiny("llama-gqa");
    let document = desk.json(&["inspect", "-m", &model, "--ids", "3", "--json"]);
    assert!(document["heads"].as_array().expect("heads").iter().all(|head| head["normalised_entropy"].is_null()));
    assert!(desk.ok(&["inspect", "-m", &model, "--ids", "3"]).contains("there is nothing to measure"));
}

#[test]
fn a_page_of_two_thousand_tokens_stays_below_ten_megabytes() {
    let desk = Desk::new();
    let ids: Vec<String> = (0..2_000).map(|position| (300 + position * 37 % 2_000).to_string()).collect();
    desk.ok(&["inspect", "--ids", &ids.join(","), "--context", "2000", "--html", "long.html"]);
    let page = desk.text("long.html");
    assert!(page.len() <= 10_000_000, "{} bytes", page.len());
    assert!(page.contains("2000 tokens") && page.trim_end().ends_with("</html>"), "the page is not whole");
}

#[test]
fn a_file_that_exists_is_replaced() {
    let desk = Desk::new();
    desk.put("look.html", "old");
    desk.ok(&["inspect", "x", "--html", "look.html"]);
    assert!(desk.text("look.html").len() > 1000);
}

#[test]
fn a_chat_is_shown_with_its_template_and_its_named_parts() {
    let desk = Desk::new();
    let document = desk.json(&["inspect", "hello", "--chat", "--system", "Be brief.", "--json"]);
    let names: Vec<&str> = document["spans"].as_array().expect("a list").iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["system", "user"]);
    assert!(document["text"].as_str().expect("a text").contains("Be brief."));
}

#[test]
fn the_page_and_the_summary_speak_the_language_asked_for() {
    let desk = Desk::new();
    desk.ok(&["inspect", "x", "--html", "look.html", "--lang", "zh-CN"]);
    let page = desk.text("look.html");
    assert!(page.contains("lang=\"zh-CN\"") && page.contains("下一个词元"), "{}", &page[..400]);
    let mut command = desk.command(&["inspect", "x"]);
    command.env("GLASSBOX_LANG", "zh-CN");
    assert!(crate::desk::told(command).out.contains("下一个词元"));
    let mut command = desk.command(&["inspect", "x"]);
    command.env("GLASSBOX_LANG", "");
    assert!(crate::desk::told(command).out.contains("Next tokens"), "an empty variable is the default");
    desk.refuses(&["inspect", "x", "--lang", "fr"], 2, &["wanted `en` or `zh-CN`"]);
}

#[test]
fn impossible_choices_are_refused_before_anything_is_written() {
    let desk = Desk::new();
    let model = tiny("llama-gqa");
    let with_ids = |more: &[&'static str]| [&["inspect", "-m", model.as_str(), "--ids", "1,2,3"], more].concat();
    for (args, words) in [
        (with_ids(&["--heads", "9.9"]), "no head `9.9`; wanted layer.head from 0.0 to"),
        (with_ids(&["--heads", "first"]), "no head `first`; wanted layer.head"),
        (with_ids(&["--heads", "1.5", "--max-heads", "2"]), "cannot be used with"),
        (with_ids(&["--site", "blocks.*.attn.patern", "--out", "a.st"]), "did you mean `blocks.*.attn.pattern`?"),
        (with_ids(&["--site", "blocks.9.attn.q", "--out", "a.st"]), "chose no site of this model"),
        (with_ids(&["--site", "blocks.x.attn.q", "--out", "a.st"]), "`x` names no layer"),
        (with_ids(&["--heads", "0.0,1.1,0.0"]), "--heads names head 0.0 twice; wanted each once"),
        (with_ids(&["--max-heads", "0"]), "wanted a whole number from 1 on"),
        (with_ids(&["--context", "500000000"]), "cache"),
        (with_ids(&["--site", "logits"]), "--out"),
        (with_ids(&["--out", "a.st"]), "--site"),
        (with_ids(&["--site", "logits", "--out", "a.st", "--out-limit-mib", "0"]), "more than 0 bytes"),
        (with_ids(&["--chat"]), "cannot be used with"),
        (vec!["inspect", "-m", &model, "--ids", "1,61"], "61"),
        (vec!["inspect", "-m", &model, "--ids", "1,,2"], "wanted token ids with commas"),
        (vec!["inspect", "-m", &model, "--ids", "-1"], "-1"),
        (vec!["inspect", "-m", &model, "x"], "no tokenizer"),
        (vec!["inspect"], "<TEXT>"),
    ] {
        desk.refuses(&args, 2, &[words]);
    }
}

#[test]
fn a_prompt_longer_than_the_context_is_refused_with_both_numbers_unless_more_is_asked_for() {
    let desk = Desk::new();
    let long = "word ".repeat(600);
    desk.refuses(&["inspect", &long], 2, &["the prompt has ", "room for 512", "`--context` tries more"]);
    desk.refuses(&["inspect", "a b c d e f", "--context", "2"], 2, &["room for 2"]);
    // What the model was not made for can still be looked at, where positions are not a table.
    let ids: String = vec!["1"; 600].join(",");
    desk.ok(&["inspect", "--ids", &ids, "--context", "600"]);
    desk.refuses(&["inspect", "-m", &tiny("gpt2"), "--ids", &ids, "--context", "600"], 2, &["positions"]);
}
