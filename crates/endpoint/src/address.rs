use std::fmt;

use ureq::http::Uri;

/// Where a model is asked: `https://host/v1#model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    base: String,
    model: Option<String>,
}

/// Why an address or a key cannot be used. The key itself is never repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

/// The base address of `openai:model` where `OPENAI_BASE_URL` names no other.
const OPENAI: &str = "https://api.openai.com/v1";

impl Address {
    /// Whether `text` names an endpoint and not a model on this machine.
    #[must_use]
    pub fn is_address(text: &str) -> bool {
        ["http://", "https://", "openai:"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads `http(s)://host/v1#model`, or `openai:model`.
    ///
    /// - `base_url`  the value of `OPENAI_BASE_URL`, which `openai:` stands for
    ///
    /// Errors: no address of the web; one with a password or a query, which would go into records.
    pub fn parse(text: &str, base_url: Option<&str>) -> Result<Self, AddressError> {
        let (base, model) = match text.strip_prefix("openai:") {
            Some(model) => (base_url.filter(|url| !url.is_empty()).unwrap_or(OPENAI), Some(model)),
            None => text.split_once('#').map_or((text, None), |(base, model)| (base, Some(model))),
        };
        let base = base.trim_end_matches('/');
        if base.contains('@') {
            return Err(AddressError(
                "wanted an address without a password; the key comes from an environment variable (`--api-key-env`)".to_owned(),
            ));
        }
        let uri: Option<Uri> = base.parse().ok();
        let web = uri.as_ref().is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none()
        });
        if !web || base.contains('?') {
            return Err(AddressError(format!(
                "wanted the base address of an endpoint, such as `https://host/v1#model`, found `{}`",
                crate::failed::clip(base.split('?').next().unwrap_or_default())
            )));
        }
        let model = model.map(str::trim).filter(|model| !model.is_empty()).map(str::to_owned);
        Ok(Self { base: base.to_owned(), model })
    }

    /// The base address, without a slash at its end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The model, if one was named.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let uri: Option<Uri> = self.base.parse().ok();
        uri.is_some_and(|uri| {
            let host = uri.host().unwrap_or_default().to_ascii_lowercase();
            let ip: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
            host == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
        })
    }

    /// Whether a key may be sent there: encrypted, or within this machine.
    ///
    /// Errors: plain http to another machine.
    pub fn check_may_carry_key(&self) -> Result<(), AddressError> {
        if self.base.starts_with("https://") || self.is_loopback() {
            return Ok(());
        }
        Err(AddressError(format!(
            "`{}` is not encrypted, so everybody on the way could read the key: wanted https, no key (`--api-key-env \"\"`), or `--allow-plain-http`",
            self.base
        )))
    }

    /// The address of something beside the interface, such as `/tokenize`: the base without its `/v1`.
    pub(crate) fn beside(&self, path: &str) -> String {
        format!("{}{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        self.model.as_ref().map_or(Ok(()), |model| write!(f, "#{model}"))
    }
}

/// A key; its text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Takes a key; blanks around it go. `None` for an empty one.
    ///
    /// Errors: characters that no header can carry; the message names `place` and does not repeat them.
    pub fn new(text: &str, place: &str) -> Result<Option<Self>, AddressError> {
        let text = text.trim();
        if !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(AddressError(format!("{place}: wanted a key of visible ASCII characters, found others; set the variable again")));
        }
        Ok((!text.is_empty()).then(|| Self(text.to_owned())))
    }

    /// For the header `Authorization`.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// `text` with the key taken out, and every piece of it that is long enough to be one.
    ///
    /// Endpoints repeat keys in their messages, some of them in part.
    pub(crate) fn redacted(&self, text: &str) -> String {
        const PIECE: usize = 8; // bytes; a shorter piece could be a word
        let key = self.0.as_bytes();
        let bytes = text.as_bytes();
        let piece = PIECE.min(key.len());
        let mut hidden = vec![false; bytes.len()];
        for start in 0..(bytes.len() + 1).saturating_sub(piece) {
            if key.windows(piece).any(|window| window == &bytes[start..start + piece]) {
                hidden[start..start + piece].fill(true);
            }
        }
        let mut clean = String::with_capacity(text.len());
        for (at, letter) in text.char_indices() {
            // The key is ASCII, so only whole characters are hidden.
            if !hidden[at] {
                clean.push(letter);
            } else if at == 0 || !hidden[at - 1] {
                clean.push('…');
            }
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_base_and_a_model() {
        let check = |text: &str, base: &str, model: Option<&str>| {
            let address = Address::parse(text, Some("https://own.example/v1/")).expect("an address");
            assert_eq!((address.base(), address.model()), (base, model), "{text}");
        };
        check("https://host/v1#org/m:q4", "https://host/v1", Some("org/m:q4"));
        check("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1", None);
        check("http://[::1]:8080#m", "http://[::1]:8080", Some("m"));
        check("https://host/v1#", "https://host/v1", None);
        check("openai:gpt-x", "https://own.example/v1", Some("gpt-x"));
        assert_eq!(Address::parse("openai:gpt-x", None).expect("an address").base(), OPENAI);
        for wrong in
            ["https://", "ftp://host/v1", "https://user:hunter2@host/v1", "https://host/v1?key=hunter2", "host/v1", "https://a b/v1"]
        {
            let error = Address::parse(wrong, None).expect_err(wrong).to_string();
            assert!(error.starts_with("wanted") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_key_goes_over_plain_http_to_this_machine_only() {
        let may = |text: &str| Address::parse(text, None).expect("an address").check_may_carry_key().is_ok();
        for yes in ["https://host/v1", "http://localhost:8080/v1", "http://127.0.0.9/v1", "http://[::1]/v1"] {
            assert!(may(yes), "{yes}");
        }
        for no in ["http://host/v1", "http://10.0.0.1/v1", "http://localhost.evil.example/v1"] {
            assert!(!may(no), "{no}");
        }
    }

    #[test]
    fn a_key_and_its_pieces_are_taken_out_of_every_text() {
        let secret = Secret::new(" sk-abcdefghijklmnop \n", "KEY").expect("usable").expect("a key");
        let check = |text: &str, clean: &str| assert_eq!(secret.redacted(text), clean);
        check("no key here", "no key here");
        check("key sk-abcdefghijklmnop!", "key …!");
        check("键 sk-abcde****ijklmnop。", "键 …****…。");
        check("sk-abc and klmnop", "sk-abc and klmnop");
        check("", "");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(Secret::new("abc", "KEY").expect("usable").expect("a key").redacted("xabcabcx"), "x…x");
        assert_eq!(Secret::new(" ", "KEY"), Ok(None));
        let error = Secret::new("sk-\u{7}hidden", "MY_KEY").expect_err("a control character").to_string();
        assert!(error.starts_with("MY_KEY: wanted") && !error.contains("hidden"), "{error}");
    }
}
