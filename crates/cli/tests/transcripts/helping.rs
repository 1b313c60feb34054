//! Help, version, completions.

use crate::desk::{Desk, told};

const COMMANDS: [&[&str]; 17] = [
    &["generate"],
    &["inspect"],
    &["score"],
    &["serve"],
    &["test"],
    &["demo"],
    &["report"],
    &["models", "list"],
    &["models", "info"],
    &["models", "pull"],
    &["explain"],
    &["sites"],
    &["quantize"],
    &["bench"],
    &["bench", "growth"],
    &["schema"],
    &["completions"],
];

#[test]
fn the_help_of_the_whole_program_reads_as_agreed() {
    insta::assert_snapshot!("help", Desk::new().ok(&["--help"]));
}

#[test]
fn every_command_has_help_in_english_and_chinese_that_fits_a_page() {
    let desk = Desk::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let args = [command, &[flag]].concat();
            let english = desk.ok(&args);
            assert!(english.contains("Usage: glassbox"), "{args:?}:\n{english}");
            assert!(english.lines().all(|line| line.chars().count() <= 100), "{args:?}: a line is too long:\n{english}");
            let mut in_chinese = desk.command(&args);
            in_chinese.env("GLASSBOX_LANG", "zh-CN");
            let chinese = told(in_chinese);
            assert!(chinese.code == 0 && chinese.out.contains("用法：glassbox"), "{args:?}: {chinese:?}");
            for left in ["Usage:", "Options:", "Arguments:", "Print help"] {
                assert!(!chinese.out.contains(left), "{args:?}: `{left}` is not translated:\n{}", chinese.out);
            }
        }
    }
}

#[test]
fn nothing_typed_is_answered_with_help_and_exit_code_2() {
    let desk = Desk::new();
    for args in [&[][..], &["models"]] {
        let told = desk.run(args);
        assert_eq!((told.code, told.out.as_str()), (2, ""), "{args:?}");
        assert!(told.err.contains("Usage: glassbox") && told.err.contains("Commands:"), "{args:?}: {}", told.err);
    }
}

#[test]
fn a_mistyped_command_or_flag_names_the_nearest() {
    let desk = Desk::new();
    desk.refuses(&["inspct", "x"], 2, &["'inspct'", "'inspect'"]);
    desk.refuses(&["generate", "x", "--sede", "1"], 2, &["'--sede'", "'--seed'"]);
    desk.refuses(&["completions", "cmd"], 2, &["bash", "fish", "zsh"]);
}

#[test]
fn the_version_is_one_line() {
    assert_eq!(Desk::new().ok(&["--version"]), format!("glassbox {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.ok(&["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command[0]), "{shell} does not know {command:?}");
        }
    }
}
