//! The whole of a pull: list, choose, fetch, link, refer.

use std::fs;
use std::path::{Path, PathBuf};

use glassbox_checkpoint::{HubCache, ModelName};

use crate::error::{HubError, fault};
use crate::fetch::Remote;
use crate::listing::Listing;
use crate::selection::{Selection, select, shards};
use crate::settings::HubSettings;
use crate::store::Store;
use crate::watch::Watch;
use crate::web::{Ask, Failed, Retries, Web};

/// The hub and the cache into which its files go.
#[derive(Clone, Debug)]
pub struct Hub {
    settings: HubSettings,
    cache: HubCache,
}

/// A model that is in the cache now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// What [`glassbox_checkpoint::Checkpoint::open`] takes: a snapshot's folder or a GGUF file in it.
    pub path: PathBuf,
    /// The commit.
    pub revision: String,
    /// The files that the model needs.
    pub files: Vec<PulledFile>,
}

/// One file of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledFile {
    /// Its name in the repository.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The name of its content in `blobs`; empty where the hub was not asked.
    pub etag: String,
    /// Whether that is a checksum, and was found right when the file came.
    pub checked: bool,
    /// Whether it came just now; it was there already otherwise.
    pub fetched: bool,
}

const LONGEST_LISTING: u64 = 32 << 20; // bytes; a hundred thousand files take about a third of it

impl Hub {
    /// A client with these settings.
    #[must_use]
    pub fn new(settings: HubSettings, cache: HubCache) -> Self {
        Self { settings, cache }
    }

    /// Brings what `model` needs into the cache. What is there already is not fetched again, what came in part is continued; the
    /// branch moves to the new commit only when all is there. Where the environment forbids the network, the cache alone is looked at.
    ///
    /// # Errors
    ///
    /// See [`HubError`]; a failed pull can be repeated and goes on where it ended.
    pub fn pull(&self, model: &ModelName, watch: &mut dyn Watch) -> Result<Pulled, HubError> {
        if let Some(variable) = self.settings.offline {
            return self.offline(model, variable);
        }
        let cache = self.cache.folder().ok_or_else(|| {
            let found = "no variable that says where it is";
            HubError::Setting(fault(&model.to_string(), "the folder of the Hugging Face cache", found, "set HF_HOME or HOME"))
        })?;
        let web = Web::new(&self.settings);
        let store = Store::new(cache, &model.name);
        let mut pull = Pull { web: &web, retries: Retries::new(&self.settings.patience), store: &store, name: &model.name, watch };
        let listing = pull.listing(model)?;
        let files = match select(model, &listing)? {
            Selection::Gguf(files) | Selection::Folder { files, index: None } => pull.fetch(&listing.commit, &files)?,
            Selection::Folder { files, index: Some(index) } => {
                let mut fetched = pull.fetch(&listing.commit, &files)?;
                let path = store.file(&listing.commit, index);
                let index = fs::read(&path).map_err(|source| HubError::io(&path, "read it", source))?;
                fetched.extend(pull.fetch(&listing.commit, &shards(model, &listing, &index)?)?);
                fetched
            }
        };
        let (_, path) = self.cache.find(&ModelName { revision: Some(listing.commit.clone()), ..model.clone() })?;
        store.refer(model.revision_or_main(), &listing.commit)?;
        Ok(Pulled { path, revision: listing.commit, files })
    }

    /// What the cache has of `model`, while `variable` forbids to ask the hub.
    fn offline(&self, model: &ModelName, variable: &str) -> Result<Pulled, HubError> {
        let wanted = "the model in the cache, or leave to fetch it";
        let missing = |error: HubError| {
            let found = error.fault().map_or_else(|| error.to_string(), |fault| fault.found.clone());
            let remedy = format!("unset {variable} to fetch it");
            HubError::Refused(fault(&model.to_string(), wanted, format!("{found}, and {variable} forbids the network"), remedy))
        };
        let (snapshot, path) = self.cache.find(model).map_err(|error| missing(error.into()))?;
        let files = files_of(&snapshot.folder, &path)?;
        Ok(Pulled { path, revision: snapshot.revision, files })
    }
}

/// One pull under way.
struct Pull<'a> {
    web: &'a Web<'a>,
    retries: Retries<'a>,
    store: &'a Store,
    name: &'a str,
    watch: &'a mut dyn Watch,
}

impl Pull<'_> {
    fn listing(&mut self, model: &ModelName) -> Result<Listing, HubError> {
        let subject = model.to_string();
        let mut parts = vec!["api", "models"];
        parts.extend(self.name.split('/'));
        parts.extend(["revision", model.revision_or_main()]);
        let address = self.web.address(&parts);
        loop {
            let read = self.web.ask(&subject, &address, Ask::Content { from: 0 }).and_then(|mut answer| {
                answer.body.with_config().limit(LONGEST_LISTING).read_to_vec().map_err(|error| match error {
                    ureq::Error::BodyExceedsLimit(_) => {
                        let wanted = format!("a list of files of at most {LONGEST_LISTING} bytes");
                        Failed::Finally(HubError::Malformed(fault(&subject, wanted, "a longer one", "check HF_ENDPOINT")))
                    }
                    error => Failed::Again(error.to_string(), None),
                })
            });
            match read {
                Ok(bytes) => {
                    self.retries.progress();
                    return Listing::read(&subject, &bytes);
                }
                Err(failed) => self.retries.after(failed, &subject, self.watch)?,
            }
        }
    }

    /// Brings `files` of `commit` into the snapshot.
    fn fetch(&mut self, commit: &str, files: &[String]) -> Result<Vec<PulledFile>, HubError> {
        let mut remotes = Vec::new();
        for file in files {
            if self.watch.interrupted() {
                return Err(HubError::Interrupted);
            }
            let remote = Remote::ask(self.web, &mut self.retries, self.name, commit, file, self.watch)?;
            if !remote.is_in(self.store)? {
                self.watch.expect(remote.size.unwrap_or(0));
            }
            remotes.push(remote);
        }
        let mut pulled = Vec::new();
        for remote in remotes {
            let fetched = remote.fetch(self.web, &mut self.retries, self.store, self.watch)?;
            self.store.link(commit, &remote.file, &remote.tag)?;
            let blob = self.store.blob(&remote.tag);
            let bytes = fs::metadata(&blob).map_err(|source| HubError::io(&blob, "look at it", source))?.len();
            pulled.push(PulledFile { name: remote.file, bytes, etag: remote.tag, checked: fetched && remote.checksum.is_some(), fetched });
        }
        Ok(pulled)
    }
}

/// The files of a snapshot: all directly inside, or the GGUF file that was chosen.
fn files_of(folder: &Path, path: &Path) -> Result<Vec<PulledFile>, HubError> {
    let whole = folder == path;
    let inside = if whole { folder } else { path.parent().unwrap_or(folder) };
    let entries = fs::read_dir(inside).map_err(|source| HubError::io(inside, "list it", source))?;
    let mut files = Vec::new();
    for file in entries.flatten().map(|entry| entry.path()).filter(|file| whole || file == path) {
        if let Some(metadata) = fs::metadata(&file).ok().filter(fs::Metadata::is_file) {
            let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            files.push(PulledFile { name, bytes: metadata.len(), etag: String::new(), checked: false, fetched: false });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}
