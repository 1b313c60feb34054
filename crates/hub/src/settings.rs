//! Where the hub is and who asks, as the environment variables of the Hugging Face tools say it.
//!
//! Source: `huggingface_hub`, `constants.py` and "Environment variables".

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use glassbox_checkpoint::HubEnvironment;

use crate::error::{HubError, clip, fault};

/// What the environment says about the hub.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// `HF_ENDPOINT`: the hub or a mirror of it, without a slash at the end.
    pub endpoint: String,
    /// The token, if there is one.
    pub token: Option<Token>,
    /// `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`: the one of them that forbids the network.
    pub offline: Option<&'static str>,
    /// How long to wait, how often to try again.
    pub patience: Patience,
}

/// A secret that opens private repositories; its text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Takes a token; blanks around it go. `None` for an empty one.
    ///
    /// # Errors
    ///
    /// Where `text`, which comes from `place`, has characters that no header can carry; the message does not repeat them.
    pub fn new(text: &str, place: &str) -> Result<Option<Self>, HubError> {
        let text = text.trim();
        if !text.chars().all(|c| c.is_ascii_graphic()) {
            let wanted = "a token of visible ASCII characters in one line";
            return Err(HubError::Setting(fault(place, wanted, "something else", "copy the token again from the hub's settings page")));
        }
        Ok((!text.is_empty()).then(|| Self(text.to_owned())))
    }

    /// For the header `Authorization`.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// How long to wait for the network, and how often to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Attempts in a row that bring nothing before it is given up.
    pub attempts: u32,
    /// The wait after the first of them; doubled after each further one.
    pub first_wait: Duration,
    /// The longest wait, also where the server asks for more.
    pub longest_wait: Duration,
    /// To connect, and for a server to begin its answer: `HF_HUB_ETAG_TIMEOUT`.
    pub answer: Duration,
    /// For the next bytes of a file: `HF_HUB_DOWNLOAD_TIMEOUT`.
    pub read: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        // Ten seconds are the defaults of huggingface_hub; five attempts span half a minute of outage.
        Self { attempts: 5, first_wait: seconds(1), longest_wait: seconds(300), answer: seconds(10), read: seconds(10) }
    }
}

const ENDPOINT: &str = "https://huggingface.co";

impl HubSettings {
    /// Reads the settings through `variable`, which gives the value of an environment variable. An empty one counts as absent.
    ///
    /// # Errors
    ///
    /// Where a value cannot be used, with the variable's name.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, HubError> {
        let text = |name: &str| -> Result<Option<String>, HubError> {
            let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
            let not_text = |_| HubError::Setting(fault(name, "UTF-8 text", "other bytes", "correct the variable"));
            value.into_string().map(|value| Some(value.trim().to_owned())).map_err(not_text)
        };
        let is_set = |name: &str| text(name).map(|value| value.is_some_and(|value| is_true(&value)));
        let mut patience = Patience::default();
        for (name, time) in [("HF_HUB_ETAG_TIMEOUT", &mut patience.answer), ("HF_HUB_DOWNLOAD_TIMEOUT", &mut patience.read)] {
            if let Some(value) = text(name)? {
                *time = seconds(name, &value)?;
            }
        }
        let mut offline = None;
        for name in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"] {
            if offline.is_none() && is_set(name)? {
                offline = Some(name);
            }
        }
        let endpoint = text("HF_ENDPOINT")?.unwrap_or_else(|| ENDPOINT.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let rest = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
        if !rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['?', '#', '@', ' '])) {
            let wanted = format!("an address as {ENDPOINT}");
            // What stands before `@` may be a password.
            let shown = endpoint.rsplit('@').next().unwrap_or_default();
            return Err(HubError::Setting(fault("HF_ENDPOINT", wanted, format!("`{}`", clip(shown)), "correct or unset the variable")));
        }
        let token = if is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN")? { None } else { token(&variable, &text)? };
        Ok(Self { endpoint, token, offline, patience })
    }
}

/// The token of the variables, or of the file that `hf auth login` writes.
fn token(
    variable: &impl Fn(&str) -> Option<OsString>,
    text: &impl Fn(&str) -> Result<Option<String>, HubError>,
) -> Result<Option<Token>, HubError> {
    for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
        if let Some(token) = text(name)?.map(|value| Token::new(&value, name)).transpose()?.flatten() {
            return Ok(Some(token));
        }
    }
    let environment = HubEnvironment::read(variable);
    let named = variable("HF_TOKEN_PATH").filter(|value| !value.is_empty()).map(PathBuf::from);
    let inside = || environment.folder().map(|folder| folder.join("token"));
    let Some(file) = named.map(|path| environment.expanded(path)).or_else(inside) else { return Ok(None) };
    match fs::read_to_string(&file) {
        Ok(content) => Token::new(&content, &file.display().to_string()),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(HubError::io(&file, "read the token in it", error)),
    }
}

/// As `huggingface_hub` reads a switch.
fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn seconds(name: &str, value: &str) -> Result<Duration, HubError> {
    let parsed = value.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    parsed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        HubError::Setting(fault(name, "a number of seconds above 0", format!("`{}`", clip(value)), "correct or unset the variable"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<HubSettings, HubError> {
        let variables: Vec<(String, OsString)> = variables.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        HubSettings::read(|name| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
    }

    fn token(variables: &[(&str, &str)]) -> Option<String> {
        read(variables).expect("usable").token.map(|token| token.bearer())
    }

    #[test]
    fn without_variables_the_hub_is_asked_without_a_token() {
        let settings = read(&[]).expect("usable");
        assert_eq!((settings.endpoint.as_str(), settings.token, settings.offline), (ENDPOINT, None, None));
        assert_eq!(settings.patience, Patience::default());
    }

    #[test]
    fn a_mirror_may_have_a_path_and_slashes_at_its_end() {
        let endpoint = |text| read(&[("HF_ENDPOINT", text)]).map(|settings| settings.endpoint);
        assert_eq!(endpoint("https://mirror.example/hf//").expect("usable"), "https://mirror.example/hf");
        assert_eq!(endpoint("").expect("usable"), ENDPOINT);
        for wrong in ["mirror.example", "ftp://mirror.example", "https://", "https://a b", "https://user:secret@mirror.example"] {
            let error = endpoint(wrong).expect_err("no address").to_string();
            assert!(error.starts_with("HF_ENDPOINT: wanted an address") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_token_comes_from_the_variables_or_from_the_file_of_the_login() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = folder.path().join("home");
        fs::create_dir_all(home.join(".cache/huggingface")).expect("made");
        fs::write(home.join(".cache/huggingface/token"), "from-home\n").expect("written");
        fs::write(folder.path().join("mine"), " from-path \n").expect("written");
        let home = home.display().to_string();
        let path = folder.path().join("mine").display().to_string();
        let bearer = |token: &str| Some(format!("Bearer {token}"));
        assert_eq!(token(&[("HF_TOKEN", "a"), ("HUGGING_FACE_HUB_TOKEN", "b"), ("HOME", &home)]), bearer("a"));
        assert_eq!(token(&[("HF_TOKEN", ""), ("HUGGING_FACE_HUB_TOKEN", "b"), ("HOME", &home)]), bearer("b"));
        assert_eq!(token(&[("HF_TOKEN_PATH", &path), ("HOME", &home)]), bearer("from-path"));
        assert_eq!(token(&[("HOME", &home)]), bearer("from-home"));
        assert_eq!(token(&[("HOME", &home), ("HF_HOME", "~/.cache/huggingface")]), bearer("from-home"));
        assert_eq!(token(&[("HOME", &home), ("HF_HOME", "/no/such/folder")]), None);
        assert_eq!(token(&[("HF_TOKEN", "a"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
    }

    #[test]
    fn a_token_is_never_shown() {
        let error = read(&[("HF_TOKEN", "hf_se\u{7}cret")]).expect_err("a control character").to_string();
        assert!(error.starts_with("HF_TOKEN: wanted") && !error.contains("cret"), "{error}");
        let settings = read(&[("HF_TOKEN", "hf_secret")]).expect("usable");
        assert!(!format!("{settings:?}").contains("secret"));
    }

    #[test]
    fn switches_and_times_are_read_as_the_python_library_reads_them() {
        let offline = |name, value| read(&[(name, value)]).expect("usable").offline;
        assert_eq!(offline("HF_HUB_OFFLINE", "1"), Some("HF_HUB_OFFLINE"));
        assert_eq!(offline("TRANSFORMERS_OFFLINE", "Yes"), Some("TRANSFORMERS_OFFLINE"));
        assert_eq!(offline("HF_HUB_OFFLINE", "0"), None);
        let read_time = |value| read(&[("HF_HUB_DOWNLOAD_TIMEOUT", value)]).map(|settings| settings.patience.read);
        assert_eq!(read_time("2.5").expect("usable"), Duration::from_millis(2500));
        for wrong in ["0", "-1", "soon", "inf", "nan", "1e300"] {
            assert!(read_time(wrong).is_err(), "{wrong}");
        }
    }
}
