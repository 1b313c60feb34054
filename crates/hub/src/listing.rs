//! What a repository holds, as the hub lists it. The names become paths on this disk: none is believed.

use std::path::{Component, Path};

use serde::Deserialize;

use crate::error::{HubError, clip, fault};

/// The files of one commit.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The commit: forty hexadecimal digits.
    pub(crate) commit: String,
    /// Names with `/` between folders, each harmless, in alphabetical order.
    pub(crate) files: Vec<String>,
}

/// The answer of `/api/models/<name>/revision/<revision>`; everything else in it is of no use here.
#[derive(Deserialize)]
struct Reply {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Listing {
    /// Reads the answer about `model`.
    ///
    /// # Errors
    ///
    /// Where it is no listing, or has a name that would lead out of a folder.
    pub(crate) fn read(model: &str, bytes: &[u8]) -> Result<Self, HubError> {
        let wrong = |wanted: &str, found: String| {
            let remedy = "nothing was fetched; check HF_ENDPOINT, or tell the operator of this server";
            HubError::Malformed(fault(model, wanted, found, remedy))
        };
        let reply: Reply = serde_json::from_slice(bytes).map_err(|error| wrong("the hub's list of files as JSON", error.to_string()))?;
        if !is_commit(&reply.sha) {
            return Err(wrong("a commit of forty hexadecimal digits", format!("`{}`", clip(&reply.sha))));
        }
        let mut files: Vec<String> = reply.siblings.into_iter().map(|sibling| sibling.rfilename).collect();
        if let Some(name) = files.iter().find(|name| !is_harmless(name)) {
            return Err(wrong("names of files inside the repository", format!("`{}`", clip(name))));
        }
        files.sort_unstable();
        files.dedup();
        Ok(Self { commit: reply.sha, files })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.binary_search_by(|file| file.as_str().cmp(name)).is_ok()
    }
}

pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Whether `name` stays inside the folder that it is joined to, on every system.
fn is_harmless(name: &str) -> bool {
    const LONGEST: usize = 1024; // bytes; paths of 4096 are the limit of Linux, of 1024 that of macOS
    let plain = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    let system = Path::new(name).components().all(|component| matches!(component, Component::Normal(_)));
    plain && system && name.len() <= LONGEST && !name.contains(['\\', '\0']) && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn read(commit: &str, names: &[&str]) -> Result<Listing, HubError> {
        let siblings: Vec<serde_json::Value> = names.iter().map(|name| serde_json::json!({"rfilename": name, "size": 1})).collect();
        Listing::read("org/name", serde_json::json!({"sha": commit, "siblings": siblings, "private": false}).to_string().as_bytes())
    }

    #[test]
    fn a_listing_is_read_with_folders_and_rare_characters() {
        let listing = read(COMMIT, &["b/c.json", "a b.json", "模型.json", "..a", "a..b"]).expect("harmless");
        assert_eq!(listing.files, ["..a", "a b.json", "a..b", "b/c.json", "模型.json"]);
        assert!(listing.has("b/c.json") && !listing.has("c.json"));
    }

    #[test]
    fn a_name_that_would_leave_its_folder_is_refused() {
        let long = "x".repeat(1025);
        for name in ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a/.", "..\\x", "a\0b", "a\nb", "a/", &long] {
            let error = read(COMMIT, &["config.json", name]).expect_err(name).to_string();
            assert!(error.starts_with("org/name: wanted names of files inside the repository"), "{name:?}: {error}");
        }
    }

    #[test]
    fn a_commit_that_is_none_is_refused() {
        for commit in ["", "main", "../../x", "0123456789abcdef0123456789abcdef0123456g", "0123456789abcdef0123456789abcdef012345678"] {
            let error = read(commit, &[]).expect_err(commit).to_string();
            assert!(error.contains("forty hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn an_answer_that_is_no_listing_is_refused() {
        for bytes in [&b"<html>"[..], b"", b"[]", b"{}", b"{\"sha\": 1}", b"\xff"] {
            assert!(Listing::read("org/name", bytes).expect_err("no listing").to_string().contains("list of files as JSON"));
        }
    }
}
