//! `generate`.

use std::io::Read as _;
use std::process::Stdio;

use serde_json::Value;

use crate::desk::{Desk, check_no_panic, tiny, wait_until_it_listens};

/// A prompt after which a model has something to say.
const PROMPT: &str =
    "Documents:\n[1] The colour of Zorvex is amber.\n[2] Daxdor is painted teal.\n\nQuestion: What is the colour of Zorvex?";

#[test]
fn a_text_is_continued_and_ends_with_one_line_break() {
    let desk = Desk::new();
    let told = desk.run(&["generate", PROMPT, "-n", "12", "--ignore-end"]);
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    assert!(told.out.ends_with('\n') && told.out.len() > 1, "{:?}", told.out);
    assert_eq!(desk.names(), Vec::<String>::new());
}

#[test]
fn the_stream_and_the_document_hold_the_same_text() {
    let desk = Desk::new();
    for more in [&[][..], &["--chat"], &["--chat", "--system", "Answer from the numbered documents."], &["--ignore-end"]] {
        let args = [&["generate", PROMPT, "-n", "20"], more].concat();
        let document = desk.json(&[args.as_slice(), &["--json"]].concat());
        assert_eq!(format!("{}\n", text(&document)), desk.ok(&args), "{more:?}");
        assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-generation"), Some(1)));
        for token in document["tokens"].as_array().expect("a list") {
            assert!(token["log_probability"].as_f64().expect("a number") <= 0.0, "{token}");
        }
    }
}

#[test]
fn log_probabilities_are_those_of_the_raw_logits_whatever_the_sampling() {
    let desk = Desk::new();
    let of = |more: &[&str]| {
        let document = desk.json(&[&["generate", PROMPT, "-n", "6", "--ignore-end", "--json"], more].concat());
        let tokens = document["tokens"].as_array().expect("a list").clone();
        tokens
            .iter()
            .map(|token| (token["id"].as_u64().expect("an id"), token["log_probability"].as_f64().expect("a number")))
            .collect::<Vec<_>>()
    };
    let greedy = of(&[]);
    assert_eq!(of(&["--temperature", "0.5", "--top-k", "1"]), greedy);
    assert_eq!(of(&["--temperature", "3", "--top-p", "0.000001"]), greedy);
    let penalised = of(&["--repetition-penalty", "1.000001"]);
    assert_eq!(penalised[0], greedy[0], "the penalty chooses and does not describe");
}

#[test]
fn bytes_of_the_tokens_joined_are_the_text_also_where_a_character_is_split() {
    let desk = Desk::new();
    for seed in ["1", "2", "3", "4"] {
        let args = ["generate", "a", "-n", "24", "--ignore-end", "--temperature", "9", "--seed", seed, "--json"];
        let document = desk.json(&args);
        let tokens = document["tokens"].as_array().expect("a list");
        let of = |token: &Value| {
            token["bytes"].as_array().expect("a list").iter().map(|byte| byte.as_u64().expect("a byte") as u8).collect::<Vec<_>>()
        };
        let bytes: Vec<u8> = tokens.iter().filter(|token| !is_control(token)).flat_map(of).collect();
        assert_eq!(String::from_utf8_lossy(&bytes), text(&document), "seed {seed}");
        // Control characters among them are not lost on the way into a pipe.
        assert_eq!(format!("{}\n", text(&document)), desk.ok(&args[..args.len() - 1]), "seed {seed}");
    }
}

fn is_control(token: &Value) -> bool {
    token["text"].as_str().is_some_and(|text| text.starts_with("<|") && text.ends_with("|>"))
}

#[test]
fn a_chat_goes_through_the_models_own_template() {
    let desk = Desk::new();
    let document = desk.json(&["generate", "hello", "--chat", "--system", "Be brief.", "-n", "1", "--json"]);
    let prompt = document["prompt"].as_str().expect("a text");
    assert!(prompt.contains("Be brief.") && prompt.contains("hello") && prompt.contains("<|assistant|>"), "{prompt}");
}

#[test]
fn a_seed_gives_its_text_again() {
    let desk = Desk::new();
    let of = |seed: &str, threads: &str| {
        desk.ok(&["generate", "a", "-n", "24", "--ignore-end", "--temperature", "5", "--top-p", "0.999", "--seed", seed, "-t", threads])
    };
    assert_eq!(of("7", "1"), of("7", "2"));
    assert_ne!(of("7", "1"), of("8", "1"));
}

#[test]
fn a_stop_string_ends_the_text_before_it() {
    let desk = Desk::new();
    // Some seed gives a text that is long enough to be cut, whatever the weights.
    let seeds = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let args_of = |seed| ["generate", "a", "-n", "24", "--ignore-end", "--temperature", "5", "--seed", seed];
    let texts = seeds.map(|seed| (args_of(seed), desk.ok(&args_of(seed))));
    let (args, whole) = texts.into_iter().find(|(_, text)| text.trim_end().chars().count() > 12).expect("a text of some length");
    let stop: String = whole.chars().skip(8).take(3).collect();
    let cut = desk.ok(&[&args[..], &["--stop", &stop]].concat());
    assert_eq!(cut.trim_end_matches('\n'), whole.split(&stop).next().expect("a first part"));
    let document = desk.json(&[&args[..], &["--stop", &stop, "--json"]].concat());
    assert_eq!(document["finish_reason"], "stop");
}

#[test]
fn a_dash_reads_the_prompt_from_standard_input() {
    let desk = Desk::new();
    let piped = desk.run_with_input(&["generate", "-", "-n", "8"], PROMPT.as_bytes());
    assert_eq!((piped.code, piped.out), (0, desk.ok(&["generate", PROMPT, "-n", "8"])));
}

#[test]
fn the_end_of_the_turn_ends_the_answer_unless_it_is_ignored() {
    let desk = Desk::new();
    let args = ["generate", PROMPT, "--chat", "-n", "64", "--json"];
    let (ended, ignored) = (desk.json(&args), desk.json(&[&args[..], &["--ignore-end"]].concat()));
    assert_eq!(ended["finish_reason"], "stop", "{ended}");
    assert_eq!((tokens(&ignored), ignored["finish_reason"].as_str()), (64, Some("length")));
    assert!(text(&ignored).starts_with(text(&ended)), "{ignored}");
}

#[test]
fn the_context_bounds_prompt_and_answer() {
    let desk = Desk::new();
    let prompt_tokens = desk.json(&["generate", PROMPT, "-n", "0", "--json"])["prompt_ids"].as_array().expect("a list").len();
    let context = (prompt_tokens + 4).to_string();
    let document = desk.json(&["generate", PROMPT, "--ignore-end", "--context", &context, "--json"]);
    assert_eq!((tokens(&document), document["finish_reason"].as_str()), (4, Some("length")));
    let context = prompt_tokens.to_string();
    let words = [format!("{prompt_tokens} tokens"), format!("room for {prompt_tokens}")];
    desk.refuses(&["generate", PROMPT, "--context", &context], 2, &words.each_ref().map(String::as_str));
}

#[test]
fn both_kernel_sets_continue_the_same_text() {
    let desk = Desk::new();
    let of = |kernels: &str| desk.ok(&["generate", PROMPT, "--chat", "-n", "8", "--kernels", kernels]);
    assert_eq!(of("fast"), of("textbook"));
}

#[test]
fn settings_of_other_programs_are_understood() {
    let desk = Desk::new();
    let theirs = ["generate", "a", "--predict", "6", "--temp", "0.9", "--repeat-penalty", "1.1", "--ctx-size", "64", "--ignore-eos"];
    let ours = ["generate", "a", "-n", "6", "--temperature", "0.9", "--repetition-penalty", "1.1", "--context", "64", "--ignore-end"];
    assert_eq!(desk.ok(&theirs), desk.ok(&ours));
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let desk = Desk::new();
    for (setting, value, words) in [
        ("--temperature", "-1", "temperature is -1; wanted 0 or more"),
        ("--temperature", "nan", "temperature is NaN"),
        ("--top-k", "0", "top-k is 0; wanted 1 or more"),
        ("--top-p", "0", "top-p is 0; wanted more than 0"),
        ("--min-p", "1.5", "min-p is 1.5; wanted 0 to 1"),
        ("--repetition-penalty", "0", "repetition penalty is 0"),
        ("--threads", "0", "wanted a whole number from 1 on"),
        ("--context", "0", "wanted a whole number from 1 on"),
        ("--kernels", "magic", "possible values: fast, textbook"),
        ("--kv-type", "q3_0", "possible values: f32, f16, q8_0"),
        ("--allow-unread", "rope", "wants KEY=REASON, found `rope`"),
        ("--context", "99999999999999", "cache"),
    ] {
        desk.refuses(&["generate", "x", &format!("{setting}={value}")], 2, &[words]);
    }
    desk.refuses(&["generate", ""], 2, &["the prompt is empty"]);
    desk.refuses(&["generate", "x", "--system", "y"], 2, &["--chat"]);
}

#[test]
fn a_negative_number_is_a_value_and_refused_by_the_range_of_its_setting() {
    let desk = Desk::new();
    for (setting, value, words) in [
        ("--temperature", "-1", "temperature is -1; wanted 0 or more"),
        ("--temperature", "-1e-3", "temperature is -0.001; wanted 0 or more"),
        ("--min-p", "-0.5", "min-p is -0.5; wanted 0 to 1"),
        ("--top-p", "-1", "top-p is -1; wanted more than 0"),
        ("--repetition-penalty", "-2", "repetition penalty is -2; wanted more than 0"),
        ("--top-k", "-1", "'-1' for '--top-k <K>': wanted a whole number from 0 on"),
        ("--seed", "-1", "'-1' for '--seed <SEED>': wanted a whole number from 0 on"),
        ("--seed", "99999999999999999999", "wanted a smaller number"),
        ("-n", "-5", "wanted a whole number from 0 on"),
        ("--context", "-4", "wanted a whole number from 1 on"),
        ("-t", "-2", "wanted a whole number from 1 on"),
        ("--stop", "", "wanted a text; leave it out to stop at none"),
    ] {
        desk.refuses(&["generate", "x", setting, value], 2, &[words]);
    }
    for value in ["-1", "-1,2", "1,-2"] {
        desk.refuses(&["inspect", "--ids", value], 2, &["wanted token ids with commas between them"]);
    }
    desk.refuses(&["inspect", "x", "--top", "-1"], 2, &["wanted a whole number from 0 on"]);
    desk.refuses(&["test", "evidence", "--limit", "-1"], 2, &["wanted a whole number from 0 on"]);
    // Where any text is right, a number below zero is one.
    assert_eq!(desk.ok(&["generate", "x", "-n", "4", "--stop", "-1"]), desk.ok(&["generate", "x", "-n", "4"]));
    desk.ok(&["inspect", "-1"]);
}

#[test]
fn the_smallest_temperature_takes_the_most_probable_token() {
    let desk = Desk::new();
    let greedy = desk.ok(&["generate", PROMPT, "--chat", "-n", "8"]);
    for temperature in ["1e-38", "1e-45", "1e-9"] {
        assert_eq!(desk.ok(&["generate", PROMPT, "--chat", "-n", "8", "--temperature", temperature, "--seed", "3"]), greedy);
    }
}

#[test]
fn more_threads_than_can_be_of_use_are_not_started_and_change_nothing() {
    let desk = Desk::new();
    for threads in ["2000", "100000", "18446744073709551615"] {
        let told = desk.run(&["generate", PROMPT, "-n", "4", "-t", threads]);
        assert_eq!((told.code, told.out), (0, desk.ok(&["generate", PROMPT, "-n", "4", "-t", "1"])));
        assert!(told.err.starts_with(&format!("{threads} threads on ")) && told.err.contains("with the same result"), "{}", told.err);
    }
}

#[test]
fn the_first_example_of_the_help_pleases_in_both_languages() {
    let desk = Desk::new();
    for (lang, answer) in [("en", "Eldstad\n"), ("zh-CN", "梅莫城\n")] {
        let mut help = desk.command(&["generate", "--help"]);
        help.env("GLASSBOX_LANG", lang);
        let help = crate::desk::told(help).out;
        let example = help.lines().find_map(|line| line.trim().strip_prefix("glassbox ")).expect("an example");
        let (flags, rest) = example.split_once('"').expect("a quoted text");
        let question = rest.split_once('"').expect("its end").0;
        let args: Vec<&str> = flags.split_whitespace().chain([question]).collect();
        assert_eq!(desk.ok(&args), answer, "{example}");
    }
}

#[test]
fn a_model_without_a_tokenizer_says_what_works_without_one() {
    let desk = Desk::new();
    desk.refuses(&["generate", "-m", &tiny("llama-gqa"), "x"], 2, &["no tokenizer", "`glassbox inspect --ids 1,5,9` needs no tokenizer"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let desk = Desk::new();
    for args in [&["generate", "a", "-n", "200", "--ignore-end"][..], &["sites"], &["schema"], &["inspect", "a", "--json"]] {
        let mut child = desk.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        // The reading end closes before anything is read.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn ctrl_c_ends_the_answer_with_what_is_there_and_130() {
    let desk = Desk::new();
    for json in [false, true] {
        let mut args = vec!["generate", "a", "-n", "50000", "--context", "50010", "--ignore-end", "-t", "1"];
        args.extend(json.then_some("--json"));
        let mut child = desk.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut out = child.stdout.take().expect("piped");
        let mut said = Vec::new();
        if json {
            // Nothing is written before the end: it must only be listening.
            wait_until_it_listens(child.id());
        } else {
            said.resize(1, 0);
            out.read_exact(&mut said).expect("the answer begins");
        }
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.expect("there is kill").success());
        out.read_to_end(&mut said).expect("it ends");
        assert_eq!(child.wait().expect("ends").code(), Some(130));
        let said = String::from_utf8(said).expect("text");
        assert!(said.ends_with('\n'), "{said}");
        if json {
            let document: Value = serde_json::from_str(&said).expect("JSON");
            assert_eq!(document["finish_reason"], "interrupted");
        }
    }
}

#[test]
fn standard_input_that_is_no_text_is_refused_with_the_place() {
    let desk = Desk::new();
    for args in [&["generate", "-"][..], &["inspect", "-"]] {
        let told = desk.run_with_input(args, b"abc\xff\xfe");
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.err.contains("standard input: wanted UTF-8 text, found something else at byte 3"), "{told:?}");
        check_no_panic(&told, args);
    }
}

fn text(document: &Value) -> &str {
    document["text"].as_str().expect("a text")
}

fn tokens(document: &Value) -> usize {
    document["tokens"].as_array().expect("a list").len()
}
