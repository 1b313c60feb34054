//! Places that cannot be written, and disks that are full.

use std::process::Command;

use crate::desk::{Desk, Told, check_refusal, told};
use crate::testing::{check_no_litter, put_items, suite};

#[test]
fn an_output_into_a_missing_folder_is_refused_before_the_work() {
    let desk = Desk::new();
    desk.put("file", "");
    std::fs::create_dir(desk.path("folder")).expect("writable");
    for output in ["--html", "--png", "--svg"] {
        desk.refuses(&["inspect", "x", output, "missing/out"], 2, &["cannot write `missing/out`", "make the folder first"]);
        desk.refuses(&["inspect", "x", output, "file/out"], 2, &["cannot write `file/out`", "a file stands where a folder is wanted"]);
        desk.refuses(&["inspect", "x", output, "folder"], 2, &["cannot write `folder`", "a folder stands where a file is wanted"]);
    }
    desk.refuses(&["inspect", "x", "--site", "logits", "--out", "missing/a.safetensors"], 2, &["cannot write `missing/a.safetensors`"]);
}

#[test]
fn a_folder_of_runs_that_is_a_file_is_refused() {
    let desk = desk_with_suite();
    desk.put("file", "");
    desk.refuses(&["test", "suite.yaml", "--runs", "file"], 2, &["`file`", "a file stands where a folder is wanted"]);
    desk.refuses(&["test", "suite.yaml", "--runs", "file/below"], 2, &["file/below", "a file stands where a folder is wanted"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_says_so_and_ends_with_1() {
    let desk = Desk::new();
    for output in [&["--html"][..], &["--png"], &["--svg"], &["--site", "logits", "--out"]] {
        let args = [&["inspect", "x"], output, &["/dev/full"]].concat();
        let told = desk.refuses(&args, 1, &["cannot write `/dev/full`", "No space left", "free some space"]);
        assert!(!told.err.contains("--resume"), "there is no run to go on with: {}", told.err);
    }
    for args in [&["generate", "x"][..], &["inspect", "x"], &["sites"], &["models", "list", "--json"], &["completions", "bash"]] {
        let mut command = desk.command(args);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").expect("Linux has it"));
        let told = told(command);
        check_refusal(&told, args, 1, &["cannot write to standard output", "No space left"]);
        assert!(!told.err.contains("--resume"), "there is no run to go on with: {}", told.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_takes_a_page_like_a_file() {
    let desk = Desk::new();
    let page = desk.ok(&["inspect", "x", "--html", "/dev/stdout"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{page}");
    assert!(std::fs::symlink_metadata("/dev/stdout").expect("Linux has it").is_symlink());
}

/// Runs `glassbox` where no file may grow beyond `kilobytes`: what a full disk is to a program, without a disk to fill.
#[cfg(unix)]
fn with_small_files(desk: &Desk, kilobytes: usize, args: &[&str]) -> Told {
    let glassbox = desk.command(args);
    let mut shell = Command::new("sh");
    // The signal is ignored so that the program meets the error itself; `ulimit -f` counts blocks of 512 bytes.
    shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", 2 * kilobytes), "sh"]);
    shell.arg(glassbox.get_program()).args(glassbox.get_args()).current_dir(glassbox.get_current_dir().expect("it has one"));
    told(shell)
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_finished_is_not_left_behind() {
    let desk = Desk::new();
    desk.put("old.html", "old");
    for args in [
        &["inspect", "hello world", "--html", "old.html"][..],
        &["inspect", "hello world", "--png", "new.png"],
        &["inspect", "hello world", "--site", "*,blocks.*.*", "--out", "new.safetensors"],
        &["quantize", "specimen", "--to", "q8_0", "--out", "new.gguf"],
    ] {
        let told = with_small_files(&desk, 2, args);
        check_refusal(&told, args, 1, &["cannot write ", "free some space"]);
    }
    assert_eq!((desk.names(), desk.text("old.html").as_str()), (vec!["old.html".to_owned()], "old"));
}

#[cfg(unix)]
#[test]
fn a_run_on_a_full_disk_ends_with_1_keeps_its_answers_and_goes_on_later() {
    // From hardly a manifest to almost a page: the disk may be full at any moment.
    for kilobytes in [1, 4, 12, 24] {
        let desk = desk_with_suite();
        let args = ["test", "suite.yaml"];
        let told = with_small_files(&desk, kilobytes, &args);
        assert!(told.err.contains("error: ") && told.err.contains("free some space"), "{kilobytes} KiB: {told:?}");
        check_after_full_disk(&desk, &told, kilobytes);
    }
}

/// The full disk at its place: nothing half-written, and what can be resumed is resumed to its verdicts.
#[cfg(unix)]
fn check_after_full_disk(desk: &Desk, told: &Told, kilobytes: usize) {
    assert_eq!(told.code, 1, "{kilobytes} KiB: {told:?}");
    crate::desk::check_no_panic(told, &["test"]);
    check_no_litter(desk);
    for name in desk.names().iter().filter(|name| name.ends_with("report.html")) {
        assert!(desk.text(name).trim_end().ends_with("</html>"), "{name} is cut");
    }
    let begun = desk.names().iter().any(|name| name.ends_with("manifest.json"));
    // Only what was begun can go on, and that is said once.
    assert_eq!(told.err.matches("--resume last").count(), usize::from(begun), "{kilobytes} KiB: {told:?}");
    assert!(begun || !desk.names().iter().any(|name| name.starts_with("runs/")), "{kilobytes} KiB: {:?}", desk.names());
    if begun {
        let resumed = desk.run(&["test", "suite.yaml", "--resume", "last"]);
        assert!(resumed.code == 0 && resumed.out.contains("Verdict: PASS"), "{kilobytes} KiB: {resumed:?}");
        check_no_litter(desk);
    }
}

/// A real disk that is really full, where the machine lets a test have one.
#[cfg(target_os = "linux")]
#[test]
fn a_run_on_a_small_disk_says_that_it_is_full() {
    let desk = desk_with_suite();
    std::fs::create_dir(desk.path("disk")).expect("writable");
    let disk = desk.path("disk");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=24k", "glassbox-test"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return;
    }
    let args = ["test", "suite.yaml", "--runs", "disk/runs"];
    let told = desk.run(&args);
    let names = desk.names();
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.expect("there is umount").success());
    check_refusal(
        &Told { err: last_error(&told.err), ..told },
        &args,
        1,
        &["cannot ", "disk/runs/", "the disk is full", "free some space"],
    );
    assert!(!names.iter().any(|name| name.contains(".tmp")), "{names:?}");
}

/// Standard error from its last `error:` on: a run says first which run it is.
fn last_error(err: &str) -> String {
    err.rfind("error: ").map_or_else(|| err.to_owned(), |at| err[at..].to_owned())
}

fn desk_with_suite() -> Desk {
    let desk = Desk::new();
    put_items(&desk, 12);
    desk.put("suite.yaml", suite("- {metric: closed_book_accuracy, max: 0.9}"));
    desk
}
