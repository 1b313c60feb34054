//! A user's desk: an empty folder, a clean environment, and the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

/// An empty folder in which commands run.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

/// Variables of the machine that would change what a command does.
const OUTSIDE: [&str; 17] = [
    "GLASSBOX_MODEL",
    "GLASSBOX_THREADS",
    "GLASSBOX_LANG",
    "GLASSBOX_SERVER_KEY",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "HF_HOME",
    "XDG_CACHE_HOME",
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_HUB_ETAG_TIMEOUT",
    "HF_HUB_DOWNLOAD_TIMEOUT",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN",
];

/// What a command gave back.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// The path of something on the desk.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file on the desk.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a name has a folder")).expect("the desk is writable");
        std::fs::write(&path, content).expect("the desk is writable");
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of everything on the desk, folders included, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        names_below(self.folder.path())
    }

    /// `glassbox` with arguments, ready to run: no settings from outside, an empty Hugging Face cache.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("glassbox"));
        for name in OUTSIDE {
            command.env_remove(name);
        }
        command.env("HOME", self.path("home")).env("NO_COLOR", "1").current_dir(self.folder.path()).stdin(Stdio::null()).args(args);
        command
    }

    /// Runs `glassbox`.
    pub(crate) fn run(&self, args: &[&str]) -> Told {
        told(self.command(args))
    }

    /// Runs `glassbox`, which must succeed; gives its standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let told = self.run(args);
        assert_eq!(told.code, 0, "{args:?}: {told:?}");
        told.out
    }

    /// Runs `glassbox`, which must succeed; gives its standard output as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let out = self.ok(args);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error} in\n{out}"))
    }

    /// Runs `glassbox` with `bytes` on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], bytes: &[u8]) -> Told {
        let input = self.put("standard-input", bytes);
        let mut command = self.command(args);
        command.stdin(std::fs::File::open(input).expect("just written"));
        told(command)
    }

    /// Runs `glassbox`, which must fail with `code`, name each of `words` on standard error, and leave nothing on the desk.
    pub(crate) fn refuses(&self, args: &[&str], code: i32, words: &[&str]) -> Told {
        let before = self.names();
        let told = self.run(args);
        check_refusal(&told, args, code, words);
        assert_eq!(self.names(), before, "{args:?} left something behind");
        told
    }
}

/// A refusal has its exit code, says what it must say in a line `error: …`, and is no panic.
pub(crate) fn check_refusal(told: &Told, args: &[&str], code: i32, words: &[&str]) {
    assert_eq!(told.code, code, "{args:?}: {told:?}");
    assert!(told.err.starts_with("error: "), "{args:?}: {told:?}");
    for word in words {
        assert!(told.err.contains(word), "{args:?}: `{word}` is missing in {}", told.err);
    }
    check_no_panic(told, args);
}

pub(crate) fn check_no_panic(told: &Told, args: &[&str]) {
    assert!(!told.err.contains("panicked") && !told.err.contains("RUST_BACKTRACE"), "{args:?}: {}", told.err);
}

/// Runs a command to its end.
pub(crate) fn told(mut command: Command) -> Told {
    let output = command.output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("glassbox writes UTF-8");
    // A process that a signal ended has no code.
    Told { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// A folder of the repository.
pub(crate) fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display().to_string()
}

/// A tiny model of the repository.
pub(crate) fn tiny(name: &str) -> String {
    repository(&format!("fixtures/tiny/{name}"))
}

/// Names of everything below a folder, in order.
pub(crate) fn names_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).expect("a folder").map(|entry| entry.expect("readable").path()) {
            names.push(path.strip_prefix(folder).expect("below it").display().to_string());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    names.sort();
    names
}

/// Waits until a process has a handler for SIGINT; where the system does not tell, a moment that is long enough.
pub(crate) fn wait_until_it_listens(id: u32) {
    const SIGINT_CAUGHT: u64 = 1 << 1;
    let caught = || -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        u64::from_str_radix(status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim(), 16).ok()
    };
    for _ in 0..1_000 {
        if caught().is_some_and(|signals| signals & SIGINT_CAUGHT != 0) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
