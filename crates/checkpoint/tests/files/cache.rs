//! The Hugging Face cache: where it is, what is in it, which snapshot a name means.

use std::fs;
use std::path::{Path, PathBuf};

use glassbox_checkpoint::{HubCache, HubEnvironment, Usable};

use crate::write::{refused, safetensors};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const OTHER: &str = "0123457000000000000000000000000000000000";

pub(crate) fn put(cache: &Path, path: &str, bytes: &[u8]) {
    let path = cache.join(path);
    fs::create_dir_all(path.parent().expect("inside the cache")).expect("made");
    fs::write(path, bytes).expect("written");
}

/// A cache with one complete model, one older snapshot of it, one unfinished download, and one repository of GGUF files.
pub(crate) fn cache() -> (tempfile::TempDir, HubCache) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let weights = safetensors("{}", b"");
    for commit in [COMMIT, OTHER] {
        put(root, &format!("models--org--name/snapshots/{commit}/config.json"), b"{}");
        put(root, &format!("models--org--name/snapshots/{commit}/model.safetensors"), &weights);
    }
    put(root, "models--org--name/refs/main", COMMIT.as_bytes());
    put(root, "models--org--name/refs/pr/1", OTHER.as_bytes());
    put(root, &format!("models--org--half/snapshots/{COMMIT}/config.json"), b"{}");
    put(
        root,
        &format!("models--org--half/snapshots/{COMMIT}/model.safetensors.index.json"),
        br#"{"weight_map": {"a": "model-00001-of-00001.safetensors"}}"#,
    );
    put(root, "models--org--half/refs/main", COMMIT.as_bytes());
    for file in ["m-Q4_K_M.gguf", "m-Q8_0.gguf"] {
        put(root, &format!("models--org--gguf/snapshots/{COMMIT}/{file}"), b"GGUF");
    }
    put(root, "models--org--gguf/refs/main", format!("{COMMIT}\n").as_bytes());
    put(root, "models--gpt2/refs/main", COMMIT.as_bytes());
    put(root, "datasets--org--data/refs/main", COMMIT.as_bytes());
    put(root, "version.txt", b"1");
    let cache = HubCache::at(root.to_owned());
    (folder, cache)
}

#[test]
fn the_variables_are_tried_in_the_order_of_the_hub() {
    let all = HubEnvironment {
        hf_hub_cache: Some("/a".into()),
        huggingface_hub_cache: Some("/b".into()),
        hf_home: Some("/c".into()),
        xdg_cache_home: Some("/d".into()),
        home: Some("/e".into()),
    };
    let folder = |environment: &HubEnvironment| HubCache::from_environment(environment).folder().map(Path::to_owned);
    let mut environment = all;
    assert_eq!(folder(&environment), Some(PathBuf::from("/a")));
    environment.hf_hub_cache = None;
    assert_eq!(folder(&environment), Some(PathBuf::from("/b")));
    environment.huggingface_hub_cache = Some("".into());
    assert_eq!(folder(&environment), Some(PathBuf::from("/c/hub")));
    environment.hf_home = Some("~/hf".into());
    assert_eq!(folder(&environment), Some(PathBuf::from("/e/hf/hub")));
    environment.hf_home = None;
    assert_eq!(folder(&environment), Some(PathBuf::from("/d/huggingface/hub")));
    environment.xdg_cache_home = None;
    assert_eq!(folder(&environment), Some(PathBuf::from("/e/.cache/huggingface/hub")));
    environment.home = None;
    assert_eq!(folder(&environment), None);
}

#[test]
fn every_snapshot_is_listed_with_its_state() {
    let (_folder, cache) = cache();
    let models = cache.models().expect("readable");
    let names: Vec<(&str, &str)> = models.iter().map(|model| (model.name.as_str(), model.revision.as_str())).collect();
    assert_eq!(names, [("org/gguf", COMMIT), ("org/half", COMMIT), ("org/name", COMMIT), ("org/name", OTHER)]);
    assert_eq!(models[0].usable, Usable::Gguf(vec!["m-Q4_K_M.gguf".to_owned(), "m-Q8_0.gguf".to_owned()]));
    assert_eq!(models[0].bytes, 8);
    assert!(matches!(&models[1].usable, Usable::No(why) if why.contains("model-00001-of-00001.safetensors is missing")), "{:?}", models[1]);
    assert_eq!((&models[2].usable, &models[2].refs), (&Usable::Folder, &vec!["main".to_owned()]));
    assert_eq!(models[3].refs, ["pr/1"]);
}

#[test]
fn a_cache_that_does_not_exist_is_empty() {
    assert!(HubCache::at("/no/such/cache".into()).models().expect("no error").is_empty());
    assert!(HubCache::from_environment(&HubEnvironment::default()).models().expect("no error").is_empty());
}

#[test]
fn a_name_means_the_branch_main_and_a_revision_a_branch_or_a_commit() {
    let (_folder, cache) = cache();
    let revision = |revision: Option<&str>| cache.resolve("org/name", revision).expect("in the cache").revision;
    assert_eq!(revision(None), COMMIT);
    assert_eq!(revision(Some("main")), COMMIT);
    assert_eq!(revision(Some("pr/1")), OTHER);
    assert_eq!(revision(Some(OTHER)), OTHER);
    assert_eq!(revision(Some("0123457")), OTHER);
    refused(cache.resolve("org/name", Some("012345")), "not_found", &["org/name@012345", COMMIT, OTHER]);
    refused(cache.resolve("org/name", Some("v2")), "not_found", &["no snapshot of `v2`", "models pull org/name@v2"]);
}

#[test]
fn a_model_that_is_not_in_the_cache_is_reported_with_the_cache_and_what_to_do() {
    let (folder, cache) = cache();
    let path = folder.path().display().to_string();
    refused(
        cache.resolve("org/other", None),
        "not_found",
        &["org/other", &path, "no model of this name", "glassbox models pull org/other`"],
    );
    refused(HubCache::at("/no/such/cache".into()).resolve("org/name", None), "not_found", &["/no/such/cache", "there is no cache yet"]);
    let nowhere = HubCache::from_environment(&HubEnvironment::default());
    refused(nowhere.resolve("org/name", None), "not_found", &["org/name", "HF_HOME"]);
    refused(cache.resolve("gpt2", None), "not_found", &["gpt2", "snapshots: none"]);
    refused(cache.resolve("org/half", None), "not_found", &["org/half", "is missing", "models pull org/half"]);
}

#[test]
fn a_name_cannot_leave_the_cache() {
    let (_folder, cache) = cache();
    for name in ["../../etc", "org/..", "a/b/c", "/abs", "org/", "", "org/na me", "-x/y", "a--b"] {
        refused(cache.resolve(name, None), "not_found", &["a name that no model can have"]);
    }
    for revision in ["../../x", "", "/x", "a//b", "..", "a\\b"] {
        refused(cache.resolve("org/name", Some(revision)), "not_found", &["a revision that cannot be"]);
    }
}

#[cfg(unix)]
#[test]
fn links_into_blobs_are_followed_and_broken_ones_count_as_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    put(root, "models--o--n/blobs/abc", b"{}");
    put(root, "models--o--n/refs/main", COMMIT.as_bytes());
    let snapshot = root.join(format!("models--o--n/snapshots/{COMMIT}"));
    fs::create_dir_all(&snapshot).expect("made");
    std::os::unix::fs::symlink("../../blobs/abc", snapshot.join("config.json")).expect("linked");
    std::os::unix::fs::symlink("../../blobs/gone", snapshot.join("model.safetensors")).expect("linked");
    std::os::unix::fs::symlink(".", snapshot.join("loop")).expect("linked");
    let model = &HubCache::at(root.to_owned()).models().expect("readable")[0];
    assert_eq!(model.bytes, 2);
    assert!(matches!(&model.usable, Usable::No(why) if why.contains("no model.safetensors")), "{model:?}");
}
