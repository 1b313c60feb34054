//! One question to the hub: redirects, the token, and which failures are worth another attempt.

use std::time::Duration;

use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::error::{HubError, clip, fault};
use crate::settings::{HubSettings, Patience};
use crate::watch::{Watch, wait};

/// The client.
pub(crate) struct Web<'a> {
    agent: Agent,
    settings: &'a HubSettings,
}

/// What to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// The headers alone, of the hub itself: not of the store to which it redirects.
    About,
    /// The content, from this byte on.
    Content { from: u64 },
}

/// A good answer.
pub(crate) struct Answer {
    /// 200, 206 or 416; of [`Ask::About`] also a redirect.
    pub(crate) status: u16,
    /// The entity tag that the hub gives: `X-Linked-Etag` for a large file, `ETag` for a small one; without quotes.
    pub(crate) tag: Option<String>,
    /// The bytes of the whole file by `X-Linked-Size`, or by the length of an answer without redirect.
    pub(crate) size: Option<u64>,
    /// `X-Repo-Commit`.
    pub(crate) commit: Option<String>,
    /// `Content-Range`: the first byte that comes, and how many the whole file has.
    pub(crate) range: Option<(u64, Option<u64>)>,
    pub(crate) body: Body,
}

/// Why there is no good answer.
pub(crate) enum Failed {
    /// Another attempt may succeed: what was found, and how long the server asks to wait.
    Again(String, Option<Duration>),
    /// It will not get better.
    Finally(HubError),
}

impl From<HubError> for Failed {
    fn from(error: HubError) -> Self {
        Self::Finally(error)
    }
}

const MOST_REDIRECTS: usize = 10; // as in browsers and in `requests`

impl<'a> Web<'a> {
    pub(crate) fn new(settings: &'a HubSettings) -> Self {
        let native: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
            .certs
            .into_iter()
            .map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned())
            .collect();
        // A slim container has no certificates of its own.
        let roots = if native.is_empty() { RootCerts::WebPki } else { RootCerts::from(native) };
        let Patience { answer, read, .. } = settings.patience;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(answer))
            .timeout_connect(Some(answer))
            .timeout_recv_response(Some(answer))
            .timeout_per_read(Some(read))
            .timeout_per_write(Some(read))
            .user_agent(concat!("glassbox/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build()
            .new_agent();
        Self { agent, settings }
    }

    /// The address of something below the endpoint; each part is escaped, `/` included.
    pub(crate) fn address(&self, parts: &[&str]) -> String {
        parts.iter().fold(self.settings.endpoint.clone(), |address, part| format!("{address}/{}", escaped(part)))
    }

    /// Asks `what` at `address`; `subject` is what messages call it.
    pub(crate) fn ask(&self, subject: &str, address: &str, what: Ask) -> Result<Answer, Failed> {
        let mut address = address.to_owned();
        let (mut tag, mut size, mut commit) = (None, None, None);
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send(&address, what)?;
            let status = response.status().as_u16();
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let here = self.is_endpoint(&address);
            let location = header("location").filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308));
            if here && commit.is_none() {
                commit = header("x-repo-commit").map(str::to_owned);
            }
            if tag.is_none() {
                // The plain tag of a store that the hub redirects to is another one.
                let plain = header("etag").filter(|_| here || location.is_none());
                tag = header("x-linked-etag").or(plain).and_then(bare_tag);
                size = header("x-linked-size")
                    .or_else(|| header("content-length").filter(|_| status == 200))
                    .and_then(|size| size.parse().ok());
            }
            if let Some(location) = location {
                let next = resolved(&address, location).ok_or_else(|| {
                    let found = format!("`{}`", clip(location));
                    HubError::Malformed(fault(subject, "a redirect to an address of the web", found, "check HF_ENDPOINT"))
                })?;
                let leaves = !self.is_endpoint(&next);
                if !(matches!(what, Ask::About) && leaves && tag.is_some()) {
                    address = next;
                    continue;
                }
            } else if !matches!(status, 200 | 206 | 416) {
                return Err(self.failed(subject, status, &header));
            }
            let range = header("content-range").and_then(content_range);
            return Ok(Answer { status, tag, size, commit, range, body: response.into_body() });
        }
        let found = format!("{MOST_REDIRECTS} redirects in a row");
        Err(HubError::Malformed(fault(subject, "an answer", found, "check HF_ENDPOINT")).into())
    }

    fn send(&self, address: &str, what: Ask) -> Result<ureq::http::Response<Body>, Failed> {
        let mut request = match what {
            Ask::About => self.agent.head(address),
            Ask::Content { .. } => self.agent.get(address),
        };
        // The sizes and checksums that the hub tells are those of the plain content.
        request = request.header("accept-encoding", "identity");
        if let Ask::Content { from: from @ 1.. } = what {
            request = request.header("range", format!("bytes={from}-"));
        }
        if let Some(token) = self.settings.token.as_ref().filter(|_| self.is_endpoint(address)) {
            request = request.header("authorization", token.bearer());
        }
        // A proxy could not reach this machine's own addresses.
        if is_loopback(address) {
            request = request.config().proxy(None).build();
        }
        request.call().map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl | ureq::Error::Http(_) => {
                let remedy = "check HF_ENDPOINT and the variables of the proxy (HTTPS_PROXY, ALL_PROXY)";
                Failed::Finally(HubError::Setting(fault(address, "an address that can be asked", error.to_string(), remedy)))
            }
            error => Failed::Again(error.to_string(), None),
        })
    }

    /// Whether `address` is on the endpoint's own host, where the token may go.
    fn is_endpoint(&self, address: &str) -> bool {
        origin(address).is_some_and(|found| origin(&self.settings.endpoint) == Some(found))
    }

    fn failed<'h>(&self, subject: &str, status: u16, header: &impl Fn(&str) -> Option<&'h str>) -> Failed {
        if matches!(status, 408 | 425 | 429 | 500..) {
            let wait = header("retry-after").and_then(|wait| wait.trim().parse().ok()).map(Duration::from_secs);
            return Failed::Again(format!("status {status}"), wait);
        }
        let (endpoint, code) = (&self.settings.endpoint, header("x-error-code").unwrap_or_default());
        let said = header("x-error-message").map_or_else(String::new, |text| format!(" ({})", clip(text)));
        let (what, remedy) = match (status, code) {
            (_, "GatedRepo") => {
                ("a gated repository", "accept its terms on the hub's page of it, and set HF_TOKEN to a token of the same account")
            }
            (404, "RevisionNotFound") => ("no such revision", "check the part after `@`"),
            (404, "EntryNotFound") => ("no such file", "choose another revision, or tell the publisher"),
            (401, _) if self.settings.token.is_some() => {
                ("no repository of this name that the token opens", "check the spelling, and whether the token has expired")
            }
            (401, _) => (
                "no repository of this name, or a private or gated one, and no token",
                "check the spelling; for a private or gated model set HF_TOKEN",
            ),
            (403, _) => ("no permission", "accept the model's terms on the hub's page of it, and check what the token may read"),
            (404, _) => ("no repository of this name", "check the spelling; a private model needs HF_TOKEN"),
            _ => ("an answer that nobody expects", "check HF_ENDPOINT and the proxy"),
        };
        let found = format!("{what}: {endpoint} answers with status {status}{said}");
        Failed::Finally(HubError::Refused(fault(subject, "a model that may be read", found, remedy)))
    }
}

/// How many more attempts there are, and how long the next wait is.
pub(crate) struct Retries<'a> {
    patience: &'a Patience,
    failed: u32,
}

impl<'a> Retries<'a> {
    pub(crate) fn new(patience: &'a Patience) -> Self {
        Self { patience, failed: 0 }
    }

    /// Something has come: the count starts again.
    pub(crate) fn progress(&mut self) {
        self.failed = 0;
    }

    /// Waits before the next attempt, or gives up.
    pub(crate) fn after(&mut self, failed: Failed, subject: &str, watch: &mut dyn Watch) -> Result<(), HubError> {
        let (found, asked) = match failed {
            Failed::Finally(error) => return Err(error),
            Failed::Again(found, asked) => (found, asked),
        };
        self.failed += 1;
        let Patience { attempts, first_wait, longest_wait, .. } = *self.patience;
        let give_up = |found: String, remedy: &str| Err(HubError::Network(fault(subject, "an answer", found, remedy)));
        if asked.is_some_and(|asked| asked > longest_wait) {
            let seconds = asked.unwrap_or_default().as_secs();
            return give_up(format!("{found} and the request to wait {seconds} s"), "try again after that time; what has come is kept");
        }
        if self.failed >= attempts {
            let remedy = "check the network, the proxy and HF_ENDPOINT, then do it again; what has come is kept";
            return give_up(format!("{found}, {attempts} times in a row"), remedy);
        }
        let doubled = first_wait.saturating_mul(1 << (self.failed - 1).min(16)).min(longest_wait);
        let length = asked.unwrap_or(doubled);
        watch.remark(&format!("{subject}: {found}; trying again in {:.1} s", length.as_secs_f64()));
        wait(watch, length)
    }
}

/// Scheme, host and port.
fn origin(address: &str) -> Option<(String, String, u16)> {
    let uri: Uri = address.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().or(match scheme.as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    })?;
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

fn is_loopback(address: &str) -> bool {
    origin(address).is_some_and(|(_, host, _)| {
        let ip: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        host == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
    })
}

/// Where a redirect leads; `None` where that is not the web, or where it would give up encryption.
fn resolved(address: &str, location: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let next = if location.contains("://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = path.split('?').next().unwrap_or_default().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}/{folder}/{location}")
    };
    let (from, to) = (origin(address)?.0, origin(&next)?.0);
    (to == "https" || from == "http").then_some(next)
}

/// `W/"abc"` → `abc`; `None` for a tag that cannot name a file.
fn bare_tag(tag: &str) -> Option<String> {
    const LONGEST: usize = 128; // characters; a SHA-256 has 64
    let bare = tag.trim().trim_start_matches("W/").trim_matches('"');
    let plain = bare.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    (plain && !bare.is_empty() && bare.len() <= LONGEST).then(|| bare.to_owned())
}

/// `bytes 5-9/10` → (5, 10).
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.trim().parse().ok()?, total.trim().parse().ok()))
}

/// A part of an address with everything escaped but letters, digits and `-._~`.
fn escaped(part: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    part.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_resolved_as_browsers_do_and_never_gives_up_encryption() {
        let check =
            |address: &str, location: &str, next: Option<&str>| assert_eq!(resolved(address, location).as_deref(), next, "{location}");
        let address = "https://hub.example/a/b?c=/d";
        check(address, "/x/y", Some("https://hub.example/x/y"));
        check(address, "y", Some("https://hub.example/a/y"));
        check(address, "//store.example/x", Some("https://store.example/x"));
        check(address, "https://store.example/x?sig=1", Some("https://store.example/x?sig=1"));
        check(address, "http://store.example/x", None);
        check("http://127.0.0.1:80/a", "http://store.example/x", Some("http://store.example/x"));
        check(address, "file:///etc/passwd", None);
        check(address, "https://", None);
    }

    #[test]
    fn a_tag_must_be_able_to_name_a_file() {
        let check = |tag: &str, bare: Option<&str>| assert_eq!(bare_tag(tag).as_deref(), bare, "{tag}");
        check("\"abc\"", Some("abc"));
        check("W/\"abc-1_2\"", Some("abc-1_2"));
        for wrong in ["", "\"\"", "../x", "a/b", "a.b", "a b", &"a".repeat(129)] {
            check(wrong, None);
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert_eq!(origin("https://Hub.example/x"), origin("https://hub.example:443"));
        for other in ["http://hub.example", "https://hub.example:444", "https://hub.example.evil", "https://evil/hub.example"] {
            assert_ne!(origin("https://hub.example"), origin(other), "{other}");
        }
    }

    #[test]
    fn parts_of_an_address_are_escaped() {
        assert_eq!(escaped("refs/pr/1"), "refs%2Fpr%2F1");
        assert_eq!(escaped("a b?#%ü"), "a%20b%3F%23%25%C3%BC");
    }
}
