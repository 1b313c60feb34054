//! `models pull`, against a hub on this machine.

use std::process::Stdio;
use std::time::{Duration, Instant};

use glassbox_testkit::{LocalHub, Twist};

use crate::desk::{Desk, Told, check_refusal, tiny, told};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const SNAPSHOT: &str = "home/.cache/huggingface/hub/models--org--name/snapshots/0123456789abcdef0123456789abcdef01234567";

/// A hub with a tiny model as safetensors.
fn hub() -> LocalHub {
    let hub = LocalHub::start();
    let read = |name: &str| std::fs::read(format!("{}/{name}", tiny("llama-mha"))).expect("a tiny model");
    hub.put("config.json", read("config.json"));
    hub.put_large("model.safetensors", read("model.safetensors"));
    hub.put("README.md", "of no use");
    hub
}

fn pull(desk: &Desk, hub: &LocalHub, args: &[&str], variables: &[(&str, &str)]) -> Told {
    let mut command = desk.command(&[&["models", "pull"], args].concat());
    command.env("HF_ENDPOINT", hub.endpoint()).envs(variables.iter().copied());
    told(command)
}

#[test]
fn a_model_is_fetched_and_can_be_used_by_its_name() {
    let (desk, hub) = (Desk::new(), hub());
    desk.refuses(
        &["inspect", "-m", "org/name", "--ids", "1"],
        2,
        &["org/name: wanted", "\nhint:  fetch it with `glassbox models pull org/name`"],
    );
    assert!(hub.asked().is_empty(), "nothing is fetched that was not asked for");
    let first = pull(&desk, &hub, &["org/name"], &[]);
    assert_eq!((first.code, first.out.trim_end()), (0, desk.path(SNAPSHOT).to_str().expect("UTF-8")), "{first:?}");
    assert!(first.err.starts_with("org/name is complete: ") && first.err.contains(&format!("fetched; revision {COMMIT}\n")), "{first:?}");
    assert_eq!(first.err.lines().count(), 1, "no progress in a pipe: {first:?}");
    desk.ok(&["inspect", "-m", "org/name", "--ids", "1,2", "--json"]);
    assert!(desk.ok(&["models", "list"]).contains("org/name"));
    let second = pull(&desk, &hub, &["org/name", "--quiet"], &[]);
    assert_eq!((second.code, second.out, second.err.as_str()), (0, first.out, ""));
    assert!(!desk.names().iter().any(|name| name.contains("README")));
}

#[test]
fn the_document_names_path_revision_files_and_bytes() {
    let (desk, hub) = (Desk::new(), hub());
    let told = pull(&desk, &hub, &["org/name@main", "--json"], &[]);
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    let document: serde_json::Value = serde_json::from_str(&told.out).expect("one document");
    assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-pull"), Some(1)));
    assert_eq!((document["model"].as_str(), document["revision"].as_str()), (Some("org/name@main"), Some(COMMIT)));
    assert_eq!(document["path"].as_str(), desk.path(SNAPSHOT).to_str());
    let files = document["files"].as_array().expect("a list");
    let names: Vec<&str> = files.iter().filter_map(|file| file["name"].as_str()).collect();
    assert_eq!(names, ["config.json", "model.safetensors"]);
    let sum: u64 = files.iter().filter_map(|file| file["bytes"].as_u64()).sum();
    assert_eq!((document["bytes"].as_u64(), document["fetched_bytes"].as_u64()), (Some(sum), Some(sum)));
    assert_eq!(files[1]["etag"].as_str(), Some(hub.tag("model.safetensors").as_str()));
    assert_eq!((files[1]["checked"].as_bool(), files[1]["fetched"].as_bool()), (Some(true), Some(true)));
}

#[test]
fn a_quantisation_chooses_one_gguf_file() {
    let (desk, hub) = (Desk::new(), LocalHub::start());
    let gguf = std::fs::read(format!("{}/model.gguf", tiny("gpt2"))).expect("a tiny model");
    hub.put_large("gpt2-F16.gguf", gguf.clone());
    hub.put_large("gpt2-Q8_0.gguf", gguf);
    let several = pull(&desk, &hub, &["org/name"], &[]);
    check_refusal(
        &several,
        &["org/name"],
        2,
        &["org/name: wanted one GGUF file, found several: F16, Q8_0", "\nhint:  name one as `org/name:QUANT`"],
    );
    let none = pull(&desk, &hub, &["org/name:Q2_K"], &[]);
    check_refusal(&none, &["org/name:Q2_K"], 2, &["`Q2_K`", "found F16, Q8_0"]);
    let told = pull(&desk, &hub, &["org/name:q8_0", "-q"], &[]);
    assert_eq!(told.out.trim_end(), desk.path(SNAPSHOT).join("gpt2-Q8_0.gguf").display().to_string(), "{told:?}");
    desk.ok(&["inspect", "-m", "org/name:Q8_0", "--ids", "1,2", "--json"]);
    desk.ok(&["inspect", "-m", "org/name", "--ids", "1,2", "--json"]);
    desk.refuses(&["inspect", "-m", "org/name:F16", "--ids", "1"], 2, &["in the cache Q8_0", "glassbox models pull org/name:F16"]);
}

#[test]
fn what_cannot_be_fetched_has_a_reason_a_hint_and_its_exit_code() {
    let check = |args: &[&str], twist: Option<Twist>, variables: &[(&str, &str)], code: i32, words: &[&str]| {
        let (desk, hub) = (Desk::new(), hub());
        if let Some(twist) = twist {
            hub.twist("/api/", twist);
        }
        check_refusal(&pull(&desk, &hub, args, variables), args, code, words);
    };
    check(&["specimen"], None, &[], 2, &["built in"]);
    check(&["../../etc"], None, &[], 2, &["../../etc: wanted `org/name`", "found a name that no model can have"]);
    check(&["org/name:"], None, &[], 2, &["a quantisation that cannot be"]);
    check(
        &["org/name"],
        Some(Twist::status(401)),
        &[],
        2,
        &["no repository of this name, or a private or gated one", "\nhint:  ", "set HF_TOKEN"],
    );
    check(
        &["org/name@v9"],
        Some(Twist::status(404).with("X-Error-Code", "RevisionNotFound")),
        &[],
        2,
        &["org/name@v9", "no such revision"],
    );
    check(
        &["org/name"],
        Some(Twist::status(429).with("Retry-After", "3600")),
        &[],
        1,
        &["status 429", "wait 3600 s", "\nhint:  try again after"],
    );
    check(&["org/name"], Some(Twist { body: Some(b"<html>".to_vec()), ..Twist::default() }), &[], 1, &["list of files as JSON"]);
    check(&["org/name"], None, &[("HF_HUB_OFFLINE", "1")], 2, &["HF_HUB_OFFLINE forbids the network", "\nhint:  unset HF_HUB_OFFLINE"]);
    check(&["org/name"], None, &[("HF_ENDPOINT", "hub.example")], 2, &["HF_ENDPOINT: wanted an address"]);
    check(&["org/name"], None, &[("HF_HUB_DOWNLOAD_TIMEOUT", "soon")], 2, &["HF_HUB_DOWNLOAD_TIMEOUT: wanted a number of seconds"]);
    check(&["org/name"], None, &[("HF_HUB_CACHE", "/dev/null")], 2, &["cannot make this folder", "HF_HUB_CACHE"]);
}

#[test]
fn retries_are_told_and_the_token_is_not() {
    let (desk, hub) = (Desk::new(), hub());
    hub.twist("/api/", Twist::status(429).with("Retry-After", "0"));
    let told = pull(&desk, &hub, &["org/name"], &[("HF_TOKEN", "hf_secret")]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.err.starts_with("org/name: status 429; trying again in 0.0 s\n"), "{told:?}");
    assert!(!told.err.contains("hf_secret"));
    assert!(hub.asked().iter().all(|asked| asked.header("authorization") == (!asked.store).then_some("Bearer hf_secret")));
}

#[test]
fn a_proxy_is_used_for_all_but_this_machine() {
    let (desk, hub) = (Desk::new(), hub());
    // The proxy is the hub itself, which lets every connection through to itself.
    let proxy = [("HF_ENDPOINT", "http://hub.example"), ("HTTP_PROXY", &hub.endpoint()), ("http_proxy", &hub.endpoint()), ("NO_PROXY", "")];
    let told = pull(&desk, &hub, &["org/name@v1"], &proxy);
    assert!(hub.asked().iter().any(|asked| asked.method == "CONNECT" && asked.path == "hub.example:80"), "{told:?} {:?}", hub.asked());
    let before = hub.asked().len();
    let told = pull(&desk, &hub, &["org/name"], &[("ALL_PROXY", "http://127.0.0.1:9"), ("HTTP_PROXY", "http://127.0.0.1:9")]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(hub.asked().len() > before);
}

/// Starts a pull that gets no further than 1000 bytes of the weights, and gives it when these are on the disk.
#[cfg(unix)]
fn stuck(desk: &Desk, hub: &LocalHub) -> std::process::Child {
    hub.twist("GET /model.safetensors", Twist { stall: Some((1000, Duration::from_secs(60))), ..Twist::default() });
    let mut command = desk.command(&["models", "pull", "org/name"]);
    command.env("HF_ENDPOINT", hub.endpoint()).env("HF_HUB_DOWNLOAD_TIMEOUT", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("the binary starts");
    let blob = desk.path(&format!("home/.cache/huggingface/hub/models--org--name/blobs/{}.incomplete", hub.tag("model.safetensors")));
    let begun = Instant::now();
    while std::fs::metadata(&blob).map_or(0, |metadata| metadata.len()) < 1000 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the pull did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[cfg(unix)]
#[test]
fn an_interrupted_or_killed_pull_goes_on() {
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let (desk, hub) = (Desk::new(), hub());
        let mut child = stuck(&desk, &hub);
        let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        assert_eq!(child.wait().expect("it ends").code(), code, "{signal}");
        desk.refuses(&["inspect", "-m", "org/name", "--ids", "1"], 2, &["glassbox models pull org/name"]);
        let told = pull(&desk, &hub, &["org/name"], &[]);
        assert_eq!(told.code, 0, "{signal}: {told:?}");
        let ranges: Vec<Option<String>> =
            hub.asked().iter().filter(|asked| asked.store).map(|asked| asked.header("range").map(str::to_owned)).collect();
        assert_eq!(ranges, [None, Some("bytes=1000-".to_owned())], "{signal}");
        desk.ok(&["inspect", "-m", "org/name", "--ids", "1,2", "--json"]);
    }
}
