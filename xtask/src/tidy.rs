//! The architecture rules, one function a rule. Each gives the faults it found as sentences with a place.

use std::fs;
use std::path::{Path, PathBuf};

/// Which crates of the workspace a crate may use (ARCHITECTURE.md, code map).
const MAY_USE: &[(&str, &[&str])] = &[
    ("tensor", &[]),
    ("mechanisms", &["tensor"]),
    ("anatomy", &["tensor"]),
    ("checkpoint", &["tensor"]),
    ("hub", &["checkpoint"]),
    ("endpoint", &["record"]),
    ("model", &["mechanisms", "anatomy", "checkpoint", "tensor"]),
    ("text", &["checkpoint"]),
    ("quantize", &["model", "text", "checkpoint", "tensor"]),
    ("generate", &["model", "text", "mechanisms", "anatomy"]),
    ("bench", &["model", "mechanisms", "anatomy", "tensor", "stats"]),
    ("lens", &["anatomy", "mechanisms", "tensor"]),
    ("stats", &[]),
    ("subject", &["generate", "lens", "model", "text", "checkpoint", "anatomy", "mechanisms", "record", "endpoint"]),
    ("record", &[]),
    ("suite", &["subject", "record", "stats"]),
    ("report", &["record"]),
    ("server", &["generate", "lens", "mechanisms", "model", "text"]),
    ("testkit", &["tensor", "anatomy"]),
];

/// Files in which taps may stand: the forward pass.
const TAPPED: &[&str] = &["decoder.rs", "block.rs", "attention.rs", "feed_forward.rs"];

/// Files that may be longer than 500 lines because they are tables of data or expectations.
const TABLES: &[&str] = &[];

/// Words that belong to one family of models and to `model/src/families` only.
const FAMILY_WORDS: &[&str] = &["llama", "qwen", "gemma", "gpt2", "mistral", "phi3"];

/// Runs every rule.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let sources = rust_files(&root.join("crates"));
    let mut faults = Vec::new();
    faults.extend(dependencies_follow_the_code_map(root));
    for (path, text) in &sources {
        let place = path.strip_prefix(root).unwrap_or(path).display().to_string();
        faults.extend(length(&place, text));
        faults.extend(unsafe_code(&place, text));
        faults.extend(textbooks(&place, text));
        faults.extend(taps(&place, text));
        faults.extend(families(&place, text));
        faults.extend(ignored_tests(&place, text));
        faults.extend(room_names(&place));
    }
    faults.extend(rooms_have_their_doors(root));
    faults.extend(links_lead_somewhere(root));
    faults.extend(named_tests_exist(root, &sources));
    faults
}

fn dependencies_follow_the_code_map(root: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, allowed) in MAY_USE {
        let manifest = root.join("crates").join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap_or_default();
        let normal = text.split("[dependencies]").nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
        for line in normal.lines() {
            let used = line.strip_prefix("glassbox-").and_then(|rest| rest.split(['.', ' ']).next());
            if let Some(used) = used.filter(|used| !allowed.contains(used)) {
                faults.push(format!("crates/{name} uses `{used}`; the code map of ARCHITECTURE.md allows {allowed:?}"));
            }
        }
    }
    faults
}

fn length(place: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let long = lines > 500 && !TABLES.iter().any(|table| place.ends_with(table));
    long.then(|| format!("{place} has {lines} lines; more than 500 want a wall through the room (or a line in TABLES)"))
}

fn unsafe_code(place: &str, text: &str) -> Option<String> {
    let name = place.rsplit('/').next().unwrap_or(place);
    let allowed = matches!(name, "fast.rs" | "simd.rs" | "workers.rs" | "mapped.rs")
        || place.contains("/fast/")
        || place.contains("/simd/")
        || place.contains("/tests/");
    let found = text
        .lines()
        .any(|line| !is_comment(line) && (line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl")));
    (found && !allowed).then(|| format!("{place} has unsafe code; only fast.rs, simd.rs, workers.rs, mapped.rs and tests may"))
}

fn textbooks(place: &str, text: &str) -> Vec<String> {
    if !place.ends_with("textbook.rs") {
        return Vec::new();
    }
    let mut faults = Vec::new();
    if !text.contains("#![forbid(unsafe_code)]") {
        faults.push(format!("{place} does not say #![forbid(unsafe_code)]"));
    }
    for line in text.lines().filter(|line| line.starts_with("use ")) {
        let allowed = ["use glassbox_tensor", "use ndarray", "use std::"].iter().any(|start| line.starts_with(start));
        let own = line.starts_with("use crate::") || line.starts_with("use super::");
        if !allowed && !own || line.contains("fast") || line.contains("simd") || line.contains("elementary") {
            faults.push(format!("{place}: `{line}`; a textbook uses tensor, ndarray, and contracts and textbooks of rooms, nothing fast"));
        }
    }
    faults
}

fn taps(place: &str, text: &str) -> Option<String> {
    let name = place.rsplit('/').next().unwrap_or(place);
    let allowed = place.starts_with("crates/anatomy/") || (place.starts_with("crates/model/src/") && TAPPED.contains(&name));
    let found = text.lines().any(|line| !is_comment(line) && line.contains("tap.at("));
    (found && !allowed).then(|| format!("{place} taps the forward pass; only {TAPPED:?} of crates/model may"))
}

fn families(place: &str, text: &str) -> Vec<String> {
    let inside =
        place.starts_with("crates/model/src/") || place.starts_with("crates/mechanisms/src/") || place.starts_with("crates/lens/src/");
    if !inside || place.starts_with("crates/model/src/families/") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    let names_family = |line: &str| FAMILY_WORDS.iter().any(|word| line.to_lowercase().contains(word));
    let lines = code.lines().enumerate().filter(|(_, line)| !is_comment(line) && !place.ends_with("checks.rs") && names_family(line));
    lines
        .map(|(index, line)| format!("{place}:{}: `{}` names a family; only crates/model/src/families may", index + 1, line.trim()))
        .collect()
}

fn ignored_tests(place: &str, text: &str) -> Option<String> {
    let found = text.lines().any(|line| !is_comment(line) && line.trim_start().starts_with("#[ignore"));
    found.then(|| format!("{place} ignores a test; assert what is wrong today, or remove it"))
}

fn room_names(place: &str) -> Option<String> {
    let vague = ["utils", "util", "helpers", "helper", "common", "manager", "misc"];
    let found = place.trim_end_matches(".rs").split('/').any(|part| vague.contains(&part));
    found.then(|| format!("{place}: a thing without a room has not been understood yet; name it for what it does"))
}

fn rooms_have_their_doors(root: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let Ok(entries) = fs::read_dir(root.join("crates/mechanisms/src")) else { return faults };
    for room in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let name = room.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name == "elementary" {
            continue;
        }
        for door in ["README.md", "mod.rs", "textbook.rs", "checks.rs"] {
            if !room.join(door).is_file() {
                faults.push(format!("the room crates/mechanisms/src/{name} has no {door}"));
            }
        }
        for book in ["book/src", "book/zh/src"] {
            if !root.join(format!("{book}/mechanisms/{name}.md")).is_file() {
                faults.push(format!("the room {name} has no page {book}/mechanisms/{name}.md"));
            }
        }
    }
    faults
}

fn links_lead_somewhere(root: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for path in files_ending(root, ".md") {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let folder = path.parent().unwrap_or(root);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let outside = file.is_empty() || file.contains("://") || file.starts_with("mailto:") || file.contains(' ');
            if !outside && !folder.join(file).exists() {
                faults.push(format!("{}: the link `{target}` leads nowhere", path.strip_prefix(root).unwrap_or(&path).display()));
            }
        }
    }
    faults
}

/// The page of field bugs promises tests by name, the same in both languages; a row without one says what is not built yet.
fn named_tests_exist(root: &Path, sources: &[(PathBuf, String)]) -> Vec<String> {
    let pages = ["book/src/field_bugs.md", "book/zh/src/field_bugs.md"];
    let [english, chinese] = pages.map(|place| fs::read_to_string(root.join(place)).unwrap_or_default());
    let exists = |name: &str| sources.iter().any(|(_, text)| text.contains(&format!("fn {name}()")));
    let mut faults = field_bugs(pages[0], &english, "not built yet", exists);
    faults.extend(field_bugs(pages[1], &chinese, "尚未实现", exists));
    let both = |page: &str| named_tests(page).into_iter().map(|(_, names)| names).collect::<Vec<_>>().concat();
    if both(&english) != both(&chinese) {
        faults.push(format!("{} and {} do not name the same tests in the same order", pages[0], pages[1]));
    }
    faults
}

fn field_bugs(place: &str, page: &str, not_built: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (row, names) in named_tests(page) {
        if names.is_empty() && !row.contains(not_built) {
            faults.push(format!("{place}: a row names no test and does not say that it is {not_built}: {row}"));
        }
        let missing = names.iter().filter(|name| !exists(name));
        faults.extend(missing.map(|name| format!("{place} names the test `{name}`, which does not exist")));
    }
    faults
}

/// Rows of the table with the names in their last cell.
fn named_tests(page: &str) -> Vec<(&str, Vec<String>)> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains('#'));
    rows.map(|row| (row, row.rsplit('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2).map(str::to_owned).collect())).collect()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let with_text = |path: PathBuf| fs::read_to_string(&path).ok().map(|text| (path, text));
    files_ending(folder, ".rs").into_iter().filter_map(with_text).collect()
}

/// Every file below `folder` whose name ends in `ending`, build output and hidden folders left out, in a fixed order.
fn files_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() && !matches!(name.as_str(), "target" | "runs" | "models" | "node_modules") && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_notices_what_it_forbids() {
        assert!(unsafe_code("crates/x/src/lib.rs", "unsafe { f() }").is_some());
        assert!(unsafe_code("crates/x/src/norm/fast.rs", "unsafe { f() }").is_none());
        assert!(unsafe_code("crates/x/src/lib.rs", "// unsafe { f() }").is_none());
        assert!(length("crates/x/src/lib.rs", &"x\n".repeat(501)).is_some());
        assert!(taps("crates/lens/src/lib.rs", "tap.at(Site::Query, &sizes, q);").is_some());
        assert!(taps("crates/model/src/block.rs", "tap.at(Site::Query, &sizes, q);").is_none());
        assert_eq!(families("crates/model/src/block.rs", "if name == \"llama\" {").len(), 1);
        assert!(families("crates/model/src/families/llama.rs", "const NAME: &str = \"llama\";").is_empty());
        assert!(room_names("crates/x/src/utils.rs").is_some());
        assert!(ignored_tests("crates/x/src/lib.rs", "    #[ignore]").is_some());
        let page = "| BL-1 | a | b#1 | c | `x`, `y` |\n| BL-2 | a | b#2 | c | not built yet: z |\n| BL-3 | a | b#3 | c | |";
        assert_eq!(field_bugs("page", page, "not built yet", |name| name == "x").len(), 2, "`y` is missing, and BL-3 says nothing");
        assert_eq!(textbooks("crates/m/src/norm/textbook.rs", "use super::fast::x;").len(), 2);
    }

    #[test]
    fn the_whole_tree_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let faults = check(root);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
