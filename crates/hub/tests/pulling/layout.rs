//! What a pull leaves in the cache, and what it asks for.

use std::fs;
use std::path::PathBuf;

use glassbox_checkpoint::{HubCache, locate};

use crate::desk::{COMMIT, Desk, WEIGHTS, content};

#[cfg(unix)]
#[test]
fn the_cache_has_the_layout_of_the_python_library() {
    let desk = Desk::new();
    let (pulled, notes) = desk.succeeds();
    let snapshot = desk.repository().join("snapshots").join(COMMIT);
    assert_eq!((&pulled.path, pulled.revision.as_str()), (&snapshot, COMMIT));
    for file in ["config.json", WEIGHTS] {
        let target = fs::read_link(snapshot.join(file)).expect("a link");
        assert_eq!(target, PathBuf::from(format!("../../blobs/{}", desk.hub.tag(file))));
    }
    assert_eq!((desk.hub.tag("config.json").len(), desk.hub.tag(WEIGHTS).len()), (40, 64));
    let locks: Vec<_> = fs::read_dir(desk.cache().join(".locks/models--org--name")).expect("locks").flatten().collect();
    assert_eq!(locks.len(), 2);
    assert_eq!(fs::read_dir(desk.repository().join("blobs")).expect("blobs").count(), 2);
    let told: Vec<(&str, u64, bool, bool)> =
        pulled.files.iter().map(|file| (file.name.as_str(), file.bytes, file.checked, file.fetched)).collect();
    assert_eq!(told, [("config.json", 2, true, true), (WEIGHTS, 600_000, true, true)]);
    assert_eq!((notes.expected, notes.advanced), (600_002, 600_002));
}

#[test]
fn only_what_is_needed_is_asked_for() {
    let desk = Desk::new();
    desk.succeeds();
    for asked in desk.hub.asked() {
        let wanted =
            asked.path.contains("/api/models/org/name/revision/main") || asked.path.contains("config.json") || asked.path.contains(WEIGHTS);
        assert!(wanted, "{asked:?}");
        assert_eq!(asked.header("accept-encoding"), Some("identity"));
        assert!(asked.header("user-agent").is_some_and(|agent| agent.starts_with("glassbox/")));
    }
}

#[test]
fn a_second_pull_fetches_nothing_again() {
    let desk = Desk::new();
    desk.succeeds();
    let before = desk.ranges().len();
    let (pulled, notes) = desk.succeeds();
    assert_eq!(desk.ranges().len(), before);
    assert!(pulled.files.iter().all(|file| !file.fetched));
    assert_eq!((notes.expected, notes.advanced), (0, 0));
}

#[test]
fn a_new_commit_fetches_only_what_has_changed_and_keeps_the_old_snapshot() {
    let desk = Desk::new();
    desk.succeeds();
    let other = "f".repeat(40);
    desk.hub.put("config.json", "{ }");
    desk.hub.move_to(&other);
    let (pulled, _) = desk.succeeds();
    let fetched: Vec<&str> = pulled.files.iter().filter(|file| file.fetched).map(|file| file.name.as_str()).collect();
    assert_eq!((pulled.revision, fetched), (other, vec!["config.json"]));
    assert_eq!(fs::read_to_string(desk.repository().join("snapshots").join(COMMIT).join("config.json")).expect("kept"), "{}");
}

#[test]
fn a_branch_with_slashes_is_asked_for_and_noted_as_it_is_named() {
    let desk = Desk::new();
    desk.pull("org/name@refs/pr/1").expect("a model");
    assert!(desk.hub.asked()[0].path.contains("/revision/refs%2Fpr%2F1"), "{:?}", desk.hub.asked()[0]);
    assert_eq!(fs::read_to_string(desk.repository().join("refs/refs/pr/1")).expect("a reference"), COMMIT);
    desk.pull(&format!("org/name@{COMMIT}")).expect("a model");
    assert!(!desk.repository().join("refs").join(COMMIT).exists(), "a commit needs no reference");
}

#[test]
fn shards_are_those_that_the_index_names() {
    let desk = Desk::new();
    desk.hub.put("model.safetensors.index.json", r#"{"weight_map": {"a": "s-1.safetensors", "b": "s-2.safetensors"}}"#);
    for file in ["s-1.safetensors", "s-2.safetensors", "consolidated.safetensors"] {
        desk.hub.put_large(file, content(3000));
    }
    let names = || desk.pull("org/name").expect("a model").files.into_iter().map(|file| file.name).collect::<Vec<_>>();
    assert_eq!(names(), ["config.json", WEIGHTS], "the single file is complete in itself");
    fs::remove_dir_all(desk.repository()).expect("removed");
    desk.hub.remove(WEIGHTS);
    assert_eq!(names(), ["config.json", "model.safetensors.index.json", "s-1.safetensors", "s-2.safetensors"]);
}

#[test]
fn of_a_gguf_repository_one_file_or_the_parts_of_one_are_fetched() {
    let desk = Desk::new();
    for file in ["m-Q4_K_M.gguf", "m-Q8_0.gguf", "BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf", "mmproj-F16.gguf"] {
        desk.hub.put_large(file, content(file.len() * 100));
    }
    let files = |model: &str| {
        let pulled = desk.pull(model).expect("a model");
        let located = locate(model, &HubCache::at(desk.cache().to_owned())).expect("in the cache");
        assert_eq!(located.path(), pulled.path);
        (
            pulled.path.strip_prefix(desk.repository().join("snapshots").join(COMMIT)).expect("inside").display().to_string(),
            pulled.files.len(),
        )
    };
    assert_eq!(files("org/name:q4_k_m"), ("m-Q4_K_M.gguf".to_owned(), 1));
    assert_eq!(files("org/name:bf16"), ("BF16/m-BF16-00001-of-00002.gguf".to_owned(), 2));
    assert_eq!(files("org/name@main:Q8_0"), ("m-Q8_0.gguf".to_owned(), 1));
    let error = desk.pull("org/name:Q5").expect_err("no such quantisation").to_string();
    assert!(error.contains("BF16, Q4_K_M, Q8_0"), "{error}");
    let error = desk.pull("org/name:q").expect_err("several").to_string();
    assert!(error.contains("several: Q4_K_M, Q8_0"), "{error}");
}

#[test]
fn names_with_spaces_and_other_scripts_are_fetched() {
    let desk = Desk::new();
    desk.hub.put_large("模型 100%-Q8_0.gguf", content(100));
    let pulled = desk.pull("org/name:Q8_0").expect("a model");
    assert_eq!(fs::read(pulled.path).expect("readable"), content(100));
}

#[test]
fn where_the_network_is_forbidden_the_cache_alone_answers() {
    let mut desk = Desk::new();
    desk.settings.offline = Some("HF_HUB_OFFLINE");
    let error = desk.pull("org/name").expect_err("not there").to_string();
    for word in ["org/name: wanted", "HF_HUB_OFFLINE forbids the network; unset HF_HUB_OFFLINE"] {
        assert!(error.contains(word), "{error}");
    }
    assert!(desk.hub.asked().is_empty());
    desk.settings.offline = None;
    let (online, _) = desk.succeeds();
    desk.settings.offline = Some("HF_HUB_OFFLINE");
    let asked = desk.hub.asked().len();
    let (offline, _) = desk.succeeds();
    assert_eq!((offline.path, offline.revision, offline.files.len()), (online.path, online.revision, 2));
    assert_eq!(desk.hub.asked().len(), asked);
}

#[test]
fn a_mirror_that_redirects_everything_is_followed() {
    let desk = Desk::new();
    let mirror = glassbox_testkit::LocalHub::start();
    let mut settings = desk.settings.clone();
    settings.endpoint = format!("{}/hf", mirror.endpoint());
    let tag = desk.hub.tag("config.json");
    let paths = ["GET /hf/api/", "HEAD /hf/", "HEAD /hf/", "GET /hf/", "GET /hf/"];
    for (path, rest) in paths.into_iter().zip([
        "/api/models/org/name/revision/main".to_owned(),
        format!("/org/name/resolve/{COMMIT}/config.json"),
        format!("/org/name/resolve/{COMMIT}/{WEIGHTS}"),
        format!("/org/name/resolve/{COMMIT}/config.json"),
        format!("/org/name/resolve/{COMMIT}/{WEIGHTS}"),
    ]) {
        mirror.twist(path, glassbox_testkit::Twist::status(308).with("Location", format!("{}{rest}", desk.hub.endpoint())));
    }
    let client = glassbox_hub::Hub::new(settings, HubCache::at(desk.cache().to_owned()));
    let pulled = client.pull(&glassbox_checkpoint::ModelName::parse("org/name").expect("a name"), &mut ()).expect("a model");
    assert_eq!(pulled.files[0].etag, tag);
    assert_eq!(fs::read(pulled.path.join(WEIGHTS)).expect("readable"), content(600_000));
}
