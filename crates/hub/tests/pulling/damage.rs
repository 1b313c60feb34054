//! What is not what was announced never gets a name in the cache.

use std::fs;

use glassbox_hub::HubError;
use glassbox_testkit::Twist;

use crate::desk::{COMMIT, Desk, WEIGHTS, content};

#[test]
fn wrong_bytes_are_removed_and_reported_with_both_checksums() {
    let desk = Desk::new();
    let mut wrong = content(600_000);
    wrong[300_000] ^= 1;
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { body: Some(wrong), ..Twist::default() });
    let wanted = format!("wanted SHA-256 {}, found SHA-256 ", desk.hub.tag(WEIGHTS));
    let error = desk.refuses(&["org/name: model.safetensors: ", &wanted, "it has been removed"]);
    assert!(matches!(error, HubError::Checksum(_)));
    assert!(!desk.incomplete(WEIGHTS).exists());
    desk.succeeds();
}

#[test]
fn wrong_bytes_of_a_small_file_are_removed_too() {
    let desk = Desk::new();
    desk.hub.twist(&format!("GET /org/name/resolve/{COMMIT}/config.json"), Twist { body: Some(b"[]".to_vec()), ..Twist::default() });
    desk.refuses(&["config.json: wanted git hash ", "it has been removed"]);
    assert!(!desk.blob("config.json").exists() && !desk.incomplete("config.json").exists());
}

#[test]
fn more_bytes_than_announced_are_not_written() {
    let desk = Desk::new();
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { body: Some(content(50_000_000)), ..Twist::default() });
    desk.refuses(&["wanted 600000 bytes, found more", "removed"]);
    assert_eq!(fs::metadata(desk.incomplete(WEIGHTS)).map_or(0, |metadata| metadata.len()), 0);
}

#[test]
fn a_length_that_is_a_lie_is_noticed() {
    let desk = Desk::new();
    // Too long: the connection ends first. Too short: the rest is asked for.
    for claims_bytes in [Some(700_000), Some(500_000)] {
        let _ = fs::remove_dir_all(desk.repository());
        desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { claims_bytes, ..Twist::default() });
        desk.succeeds();
    }
    let _ = fs::remove_dir_all(desk.repository());
    desk.hub.twist("HEAD", Twist::default());
    desk.hub.twist("HEAD", Twist::default().with("X-Linked-Size", "18446744073709551615"));
    desk.refuses(&["18446744073709551615 bytes, 3 times in a row"]);
}

#[test]
fn a_blob_of_another_size_is_replaced() {
    let desk = Desk::new();
    desk.succeeds();
    fs::write(desk.blob(WEIGHTS), b"cut").expect("written");
    desk.succeeds();
}

#[test]
fn a_listing_that_leads_out_of_the_cache_is_refused_before_anything_is_written() {
    for name in ["../../../evil", "/tmp/evil", "a/../../evil", "a\\..\\evil"] {
        let desk = Desk::new();
        desk.hub.list_also(name);
        let error = desk.refuses(&["wanted names of files inside the repository", "nothing was fetched"]);
        assert!(matches!(error, HubError::Malformed(_)));
        assert!(fs::read_dir(desk.cache()).expect("readable").next().is_none(), "{name}");
    }
}

#[test]
fn a_commit_or_a_tag_that_leads_out_of_the_cache_is_refused() {
    let desk = Desk::new();
    desk.hub.move_to("../../../../evil");
    desk.refuses(&["forty hexadecimal digits"]);
    for tag in ["\"../../evil\"", "\"/etc/passwd\"", "\"\"", "\"a.incomplete\""] {
        let desk = Desk::new();
        desk.hub.twist("HEAD", Twist::default().with("ETag", tag));
        desk.refuses(&["config.json: wanted the name of its content (ETag)"]);
    }
}

#[test]
fn an_answer_about_another_commit_is_refused() {
    let desk = Desk::new();
    desk.hub.twist("HEAD", Twist::default().with("X-Repo-Commit", "f".repeat(40)));
    desk.refuses(&["wanted an answer about commit 0123456789abcdef0123456789abcdef01234567"]);
}

#[test]
fn a_tag_that_is_no_checksum_is_taken_and_said_to_be_unchecked() {
    let desk = Desk::new();
    for method in ["HEAD", "GET /org/name/resolve"] {
        desk.hub.twist(method, Twist::default().with("ETag", "W/\"mirror-1\""));
    }
    let pulled = desk.pull("org/name").expect("a model");
    assert_eq!((pulled.files[0].etag.as_str(), pulled.files[0].checked), ("mirror-1", false));
}

/// `/dev/full` gives the error of a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_with_the_file() {
    let desk = Desk::new();
    fs::create_dir_all(desk.repository().join("blobs")).expect("made");
    std::os::unix::fs::symlink("/dev/full", desk.incomplete(WEIGHTS)).expect("linked");
    let error = desk.refuses(&[".incomplete: cannot write to it: No space left on device"]);
    assert!(matches!(&error, HubError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull), "{error:?}");
}

#[test]
fn a_cache_that_cannot_be_written_is_reported_with_its_path() {
    let desk = Desk::new();
    fs::write(desk.repository(), b"a file").expect("written");
    let error = desk.pull("org/name").expect_err("no folder").to_string();
    assert!(error.contains("models--org--name") && error.contains("cannot make this folder"), "{error}");
}
