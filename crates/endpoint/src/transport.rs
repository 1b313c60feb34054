//! One HTTP request, with deadlines that hold for every byte.

use std::cell::Cell;
use std::io::Read as _;
use std::time::{Duration, Instant, SystemTime};

use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, NextTimeout, RustlsConnector, TcpConnector, Transport, time,
};
use ureq::{Agent, Body};

use crate::address::{Address, Secret};
use crate::failed::{Again, Trouble, clip};
use crate::retry::retry_after;
use glassbox_record::FailureClass;

thread_local! {
    /// When the request of this thread must have got its next bytes. A request is sent and read by one thread.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sends requests to one endpoint and to nobody else.
#[derive(Debug)]
pub(crate) struct Web {
    agent: Agent,
    key: Option<Secret>,
    connect: Duration,
}

/// What an answer says before its body.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) server: Option<String>,
    pub(crate) content_type: String,
    retry_after: Option<String>,
    location: Option<String>,
}

/// An answer that is being read.
pub(crate) struct Incoming {
    pub(crate) head: Head,
    body: ureq::BodyReader<'static>,
    read: usize,
    largest: usize,
}

impl Web {
    /// - `connect`  longest time to find the host and connect to it
    pub(crate) fn new(address: &Address, key: Option<Secret>, connect: Duration) -> Self {
        let native: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
            .certs
            .into_iter()
            .map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned())
            .collect();
        // A slim container has no certificates of its own.
        let roots = if native.is_empty() { RootCerts::WebPki } else { RootCerts::from(native) };
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .timeout_per_write(Some(connect))
            .user_agent(concat!("glassbox/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build());
        if address.is_loopback() {
            // A proxy could not reach this machine's own addresses.
            config = config.proxy(None);
        }
        // Beneath TLS, so that the deadline holds for each of its pieces too.
        let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(DeadlineConnector);
        let connector = connector.chain(RustlsConnector::default());
        Self { agent: Agent::with_parts(config.build(), connector, DefaultResolver::default()), key, connect }
    }

    /// Sends a request, and gives the answer as soon as its head is there.
    ///
    /// - `body`      JSON to post; `None` only asks
    /// - `deadline`  when the head must be there
    /// - `largest`   most bytes of the answer's body
    pub(crate) fn send(&self, url: &str, body: Option<&str>, deadline: Instant, largest: usize) -> Result<Incoming, Trouble> {
        let _armed = Armed::until(deadline);
        let bearer = self.key.as_ref().map(Secret::bearer);
        let sent = match body {
            Some(body) => {
                let mut request = self.agent.post(url).header("accept-encoding", "identity").content_type("application/json");
                if let Some(bearer) = &bearer {
                    request = request.header("authorization", bearer);
                }
                request.send(body)
            }
            None => {
                let mut request = self.agent.get(url).header("accept-encoding", "identity");
                if let Some(bearer) = &bearer {
                    request = request.header("authorization", bearer);
                }
                request.call()
            }
        };
        let response = sent.map_err(|error| match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                Trouble::connection(format!("no connection within {} s", self.connect.as_secs_f64()))
            }
            ureq::Error::Timeout(_) => Trouble::timeout("the endpoint did not begin to answer in time"),
            error @ (ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl | ureq::Error::Http(_)) => {
                Trouble::finally(FailureClass::Rejected, format!("the address or the proxy cannot be used: {}", clip(&error.to_string())))
            }
            error => Trouble::connection(clip(&error.to_string())),
        })?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let milliseconds = header("retry-after-ms").and_then(|ms| ms.trim().parse::<f64>().ok()).map(|ms| (ms / 1000.0).to_string());
        let head = Head {
            status: response.status().as_u16(),
            server: header("server"),
            content_type: header("content-type").unwrap_or_default(),
            retry_after: milliseconds.or_else(|| header("retry-after")),
            location: header("location"),
        };
        let body: Body = response.into_body();
        Ok(Incoming { head, body: body.into_reader(), read: 0, largest })
    }
}

impl Incoming {
    /// The next bytes; none at the end of the body.
    pub(crate) fn next(&mut self, deadline: Instant) -> Result<Vec<u8>, Trouble> {
        let _armed = Armed::until(deadline);
        let mut bytes = vec![0; 16 << 10];
        let read = self.body.read(&mut bytes).map_err(|error| {
            if Instant::now() >= deadline {
                return Trouble::timeout("the endpoint stopped in the middle of its answer");
            }
            Trouble::connection(format!("the answer broke off after {} bytes: {}", self.read, clip(&error.to_string())))
        })?;
        self.read += read;
        if self.read > self.largest {
            return Err(Trouble::malformed(format!("the answer is larger than {} bytes, the most that is read", self.largest)));
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The whole body.
    pub(crate) fn whole(&mut self, deadline: Instant) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        loop {
            let bytes = self.next(deadline)?;
            if bytes.is_empty() {
                return Ok(body);
            }
            body.extend(bytes);
        }
    }

    /// The trouble that a status other than success tells of, with what the body says about it.
    pub(crate) fn refusal(&mut self, deadline: Instant, now: SystemTime) -> Trouble {
        let status = self.head.status;
        // A body that cannot be read explains nothing, but the status is there.
        let body = self.whole(deadline).unwrap_or_default();
        let (said, code) = explanation(&body);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let about = format!("{} {code}", said.to_lowercase());
        let asked = self.head.retry_after.as_deref().and_then(|value| retry_after(value, now)).map(Again::After);
        let soon = asked.unwrap_or(Again::Soon);
        let too_long = ["context_length", "context length", "context size", "maximum context", "exceed_context_size", "context window"];
        let (class, again, down, what) = match status {
            300..=399 => {
                let to = clip(self.head.location.as_deref().unwrap_or_default().split('?').next().unwrap_or_default());
                let what = format!("the endpoint redirects to `{to}`; redirects are not followed, so give that address itself");
                (FailureClass::Rejected, Again::Never, false, what)
            }
            // The key may be part of what is said, and sits in the middle of asterisks as often as not.
            401 => {
                let what = "the key was not accepted (status 401): check the variable that holds it".to_owned();
                return Trouble { class: FailureClass::Rejected, message: what, again: Again::Never, down: false };
            }
            429 if about.contains("insufficient_quota") => {
                (FailureClass::RateLimited, Again::Never, false, "the quota is used up".to_owned())
            }
            429 => (FailureClass::RateLimited, soon, false, "too many requests (status 429)".to_owned()),
            413 => (FailureClass::ContextTooLong, Again::Never, false, "the request is too large (status 413)".to_owned()),
            400..=499 if too_long.iter().any(|words| about.contains(words)) => {
                (FailureClass::ContextTooLong, Again::Never, false, format!("the prompt is too long (status {status})"))
            }
            408 => (FailureClass::Timeout, soon, true, "the endpoint gave up waiting (status 408)".to_owned()),
            409 | 425 => (FailureClass::Rejected, soon, false, format!("the endpoint is not ready (status {status})")),
            504 => (FailureClass::Timeout, soon, true, "the endpoint took too long for its gateway (status 504)".to_owned()),
            502 | 503 => (FailureClass::Connection, soon, true, format!("the endpoint is not there (status {status})")),
            500.. => (FailureClass::Internal, soon, true, format!("a fault inside the endpoint (status {status})")),
            _ => (FailureClass::Rejected, Again::Never, false, format!("the endpoint refused the request (status {status})")),
        };
        Trouble { class, message: format!("{what}{said}"), again, down }
    }
}

/// What a body says about a refusal, and its code: `{"error": {"message", "code", "type"}}`, `{"error": "…"}`, `{"detail": …}`, or plain text.
fn explanation(body: &[u8]) -> (String, String) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else {
        let text = String::from_utf8_lossy(body);
        return (if text.trim_start().starts_with('<') { "a page in HTML".to_owned() } else { clip(&text) }, String::new());
    };
    let error = value.get("error").unwrap_or(&value);
    let text = |name: &str| error.get(name).and_then(serde_json::Value::as_str);
    let said = error.as_str().or_else(|| text("message")).map(clip);
    let said = said.unwrap_or_else(|| clip(&value.get("detail").unwrap_or(error).to_string()));
    (said, [text("code"), text("type")].into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// The message of an error that came with a good status or in the middle of a stream.
pub(crate) fn said_in_error(body: &[u8]) -> String {
    explanation(body).0
}

/// The deadline of this thread, for as long as this lives.
struct Armed;

impl Armed {
    fn until(deadline: Instant) -> Self {
        DEADLINE.set(Some(deadline));
        Self
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        DEADLINE.set(None);
    }
}

/// Gives every connection the deadline of the thread that reads.
#[derive(Debug)]
struct DeadlineConnector;

impl<In: Transport> Connector<In> for DeadlineConnector {
    type Out = Deadlined<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, ureq::Error> {
        Ok(chained.map(Deadlined))
    }
}

#[derive(Debug)]
struct Deadlined<T>(T);

impl<T: Transport> Transport for Deadlined<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, ureq::Error> {
        if let Some(deadline) = DEADLINE.get() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ureq::Error::Timeout(ureq::Timeout::PerRead));
            }
            if left < *timeout.after {
                timeout.after = time::Duration::Exact(left);
                timeout.reason = ureq::Timeout::PerRead;
            }
        }
        self.0.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}
