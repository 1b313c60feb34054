//! What a MODEL argument means.

use glassbox_checkpoint::{HubCache, Location, Usable, locate, models_in};

use crate::cache::{COMMIT, OTHER, cache, put};
use crate::write::{gguf, refused};

#[test]
fn a_path_that_exists_is_taken_as_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    put(folder.path(), "tiny.gguf", &gguf(&[], &[], 32, b""));
    let path = folder.path().join("tiny.gguf");
    let text = path.display().to_string();
    assert_eq!(locate(&text, &HubCache::at("/no".into())).expect("found"), Location::Path(path));
}

#[test]
fn a_name_is_looked_up_in_the_cache() {
    let (_folder, cache) = cache();
    let found = |model: &str| locate(model, &cache).expect("found").path().to_owned();
    let snapshot = |name: &str, commit: &str| cache.folder().expect("known").join(format!("models--org--{name}/snapshots/{commit}"));
    assert_eq!(found("org/name"), snapshot("name", COMMIT));
    assert_eq!(found("org/name@pr/1"), snapshot("name", OTHER));
    assert_eq!(found("org/gguf:q4_k_m"), snapshot("gguf", COMMIT).join("m-Q4_K_M.gguf"));
    assert_eq!(found("org/gguf@main:Q8"), snapshot("gguf", COMMIT).join("m-Q8_0.gguf"));
}

#[test]
fn a_choice_between_files_is_never_made_silently() {
    let (_folder, cache) = cache();
    refused(locate("org/gguf", &cache), "not_found", &["org/gguf", "Q4_K_M, Q8_0", "`org/gguf:QUANT`"]);
    refused(locate("org/gguf:Q", &cache), "not_found", &["one GGUF file", "Q4_K_M, Q8_0"]);
    refused(locate("org/gguf:Q2", &cache), "not_found", &["`Q2`", "Q4_K_M, Q8_0", "glassbox models pull org/gguf:Q2`"]);
    refused(locate("org/name:Q4", &cache), "not_found", &["`Q4`", "safetensors weights"]);
}

#[test]
fn gguf_files_are_found_beside_a_configuration_in_folders_and_in_parts() {
    let (_folder, cache) = cache();
    let root = cache.folder().expect("known");
    let snapshot = format!("models--org--many/snapshots/{COMMIT}");
    put(root, "models--org--many/refs/main", COMMIT.as_bytes());
    let files = ["config.json", "mmproj-F16.gguf", "m-Q8_0.gguf", "BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"];
    for file in files.into_iter().chain(["F32/m-F32-00001-of-00002.gguf"]) {
        put(root, &format!("{snapshot}/{file}"), b"GGUF");
    }
    let found = |model: &str| locate(model, &cache).expect("found").path().to_owned();
    assert_eq!(found("org/many:q8_0"), root.join(&snapshot).join("m-Q8_0.gguf"));
    assert_eq!(found("org/many:bf16"), root.join(&snapshot).join(files[3]));
    refused(locate("org/many", &cache), "not_found", &["BF16, F32, Q8_0"]);
    refused(locate("org/many:F32", &cache), "not_found", &["1 of 2 parts", "glassbox models pull org/many:F32"]);
}

#[test]
fn a_path_that_does_not_exist_is_reported_with_the_nearest_name_in_its_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    put(folder.path(), "qwen2.5-coder.gguf", b"");
    let wrong = folder.path().join("qwen2.5-codr.gguf").display().to_string();
    let cache = HubCache::at("/no".into());
    refused(locate(&wrong, &cache), "not_found", &[&wrong, "nothing at this path", "qwen2.5-coder.gguf"]);
    for model in ["./nothing", "/nothing/at/all", "x.gguf", "a/b/c", "", "~/x", "org/name/"] {
        refused(locate(model, &cache), "not_found", &["nothing at this path", "org/name"]);
    }
}

#[test]
fn a_name_that_is_nowhere_is_reported_with_both_places_that_were_tried() {
    let (folder, cache) = cache();
    let parts = ["org/other", "no file or folder `org/other`", &folder.path().display().to_string(), "glassbox models pull org/other`"];
    refused(locate("org/other", &cache), "not_found", &parts);
}

#[test]
fn models_of_a_folder_are_listed_with_their_state() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    put(folder.path(), "b.gguf", b"GGUF");
    put(folder.path(), "a/config.json", b"{}");
    put(folder.path(), "notes/readme.txt", b"");
    let models = models_in(folder.path()).expect("readable");
    assert_eq!(models.len(), 2);
    assert!(matches!(&models[0].usable, Usable::No(why) if why.contains("no model.safetensors")), "{models:?}");
    assert_eq!(models[1].usable, Usable::Gguf(vec!["b.gguf".to_owned()]));
    assert!(models_in(&folder.path().join("none")).expect("no error").is_empty());
}
