//! A hub, an empty cache, and a client that loses patience quickly.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use glassbox_checkpoint::{HubCache, ModelName};
use glassbox_hub::{Hub, HubError, HubSettings, Patience, Pulled, Token, Watch};
use glassbox_testkit::{Asked, LocalHub};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const WEIGHTS: &str = "model.safetensors";

pub(crate) struct Desk {
    pub(crate) hub: LocalHub,
    pub(crate) settings: HubSettings,
    folder: tempfile::TempDir,
}

/// Remembers what it was told; interrupts after so many bytes.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) remarks: Vec<String>,
    pub(crate) begun: Vec<(String, u64)>,
    pub(crate) expected: u64,
    pub(crate) advanced: i64,
    pub(crate) stop_after: Option<i64>,
}

impl Watch for Notes {
    fn expect(&mut self, bytes: u64) {
        self.expected = self.expected.saturating_add(bytes);
    }

    fn begin(&mut self, file: &str, kept_bytes: u64) {
        self.begun.push((file.to_owned(), kept_bytes));
    }

    fn advance(&mut self, bytes: i64) {
        self.advanced += bytes;
    }

    fn remark(&mut self, text: &str) {
        self.remarks.push(text.to_owned());
    }

    fn interrupted(&self) -> bool {
        self.stop_after.is_some_and(|bytes| self.advanced >= bytes)
    }
}

/// Bytes that differ from place to place, so that a shifted file is noticed.
pub(crate) fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

impl Desk {
    /// A repository with a configuration, weights of 600 000 bytes, and what is of no use here.
    pub(crate) fn new() -> Self {
        let hub = LocalHub::start();
        hub.put("config.json", "{}");
        hub.put("README.md", "read me");
        hub.put_large(WEIGHTS, content(600_000));
        hub.put_large("pytorch_model.bin", content(10));
        let patience = Patience {
            attempts: 3,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_secs(2),
            answer: Duration::from_secs(5),
            read: Duration::from_millis(300),
        };
        let settings = HubSettings { endpoint: hub.endpoint(), token: None, offline: None, patience };
        Self { hub, settings, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn with_token(mut self) -> Self {
        self.settings.token = Token::new("hf_secret", "the test").expect("a token");
        self
    }

    pub(crate) fn cache(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn client(&self) -> Hub {
        Hub::new(self.settings.clone(), HubCache::at(self.cache().to_owned()))
    }

    pub(crate) fn pull(&self, model: &str) -> Result<Pulled, HubError> {
        self.pull_watched(model, &mut Notes::default())
    }

    pub(crate) fn pull_watched(&self, model: &str, notes: &mut Notes) -> Result<Pulled, HubError> {
        self.client().pull(&ModelName::parse(model).expect("a name"), notes)
    }

    /// Pulls, which must fail with an error that has each of `words`, and leave no finished file of the weights.
    pub(crate) fn refuses(&self, words: &[&str]) -> HubError {
        let error = self.pull("org/name").expect_err("a refusal");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "`{word}` is missing in: {text}");
        }
        assert!(!self.blob(WEIGHTS).exists(), "{text}");
        assert!(!self.repository().join("refs/main").exists(), "{text}");
        error
    }

    /// Pulls, which must succeed with the right bytes.
    pub(crate) fn succeeds(&self) -> (Pulled, Notes) {
        let mut notes = Notes::default();
        let pulled = self.pull_watched("org/name", &mut notes).expect("a model");
        assert_eq!(fs::read(pulled.path.join(WEIGHTS)).expect("readable"), content(600_000));
        assert!(!self.incomplete(WEIGHTS).exists());
        assert_eq!(fs::read_to_string(self.repository().join("refs/main")).expect("a reference"), pulled.revision);
        (pulled, notes)
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.cache().join("models--org--name")
    }

    pub(crate) fn blob(&self, file: &str) -> PathBuf {
        self.repository().join("blobs").join(self.hub.tag(file))
    }

    pub(crate) fn incomplete(&self, file: &str) -> PathBuf {
        self.repository().join("blobs").join(format!("{}.incomplete", self.hub.tag(file)))
    }

    /// What the store was asked for the weights.
    pub(crate) fn ranges(&self) -> Vec<Option<String>> {
        let asked = self.hub.asked().into_iter().filter(|asked| asked.store && asked.path.contains(WEIGHTS));
        asked.map(|asked: Asked| asked.header("range").map(str::to_owned)).collect()
    }
}
