//! An OpenAI-compatible server of one model: `/v1/chat/completions`, `/v1/completions`, `/v1/models`, `/health`.
//!
//! | step | file | what happens |
//! |---|---|---|
//! | connect | `connections.rs` | accepts, limits headers, bodies and waiting |
//! | route | `routes.rs` | holds off strangers, reads the body, answers in one piece or as a stream |
//! | understand | `asked.rs`, `fields.rs` | field by field, against the limits; what is not served is refused, never dropped |
//! | prepare | `desk.rs` | template and tokenizer: choices with their prompts |
//! | compute | `engine.rs` | one thread, one batch; choices join and leave between passes |
//! | tell | `wire.rs`, `stream.rs` | documents and events |
//!
//! By the contract of equal bits an answer does not depend on what else is asked at the same time, nor on what was asked before.
//!
//! A client that goes away takes its work with it: its choices leave the batch before the next pass.

mod asked;
mod connections;
mod desk;
mod engine;
mod fields;
mod refusal;
mod routes;
mod stream;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use glassbox_mechanisms::Workers;
use glassbox_mechanisms::cache::{KvType, Pool};
use glassbox_model::{Keeping, Model};
use glassbox_text::{ChatTemplate, Tokenizer};

/// What is served.
pub struct Offer {
    /// The name by which clients ask for it.
    pub name: String,
    /// The model.
    pub model: Model,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
    /// Its chat template; chats are refused where there is none.
    pub template: Option<ChatTemplate>,
    /// The threads that compute.
    pub workers: Workers,
    /// Hash over all that answers depend on; clients see it as `system_fingerprint`.
    pub fingerprint: String,
    /// How the cache stores keys and values.
    pub kv_type: KvType,
    /// Tokens of a prompt and its answer together.
    pub context: usize,
}

/// How it is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Choices that are made at a time.
    pub slots: usize,
    /// Choices that wait beyond those; more are refused with 429.
    pub waiting: usize,
    /// Most bytes of all caches together.
    pub cache_limit_bytes: u64,
    /// What clients must send as `Authorization: Bearer ...`; never shown.
    pub key: Option<String>,
}

/// Why a server cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The caches would not fit.
    #[error("{slots} choices of {context} tokens at a time want a cache of {wanted_mib} MiB; wanted at most {limit_mib} MiB")]
    Memory {
        /// Choices at a time.
        slots: usize,
        /// Tokens of each.
        context: usize,
        /// What they want together.
        wanted_mib: u64,
        /// What there may be.
        limit_mib: u64,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// The model and what belongs to it, shared by all parts of the server.
pub(crate) struct Served {
    pub(crate) name: String,
    pub(crate) model: Model,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) template: Option<ChatTemplate>,
    pub(crate) workers: Workers,
    pub(crate) fingerprint: String,
    pub(crate) keeping: Keeping,
    pub(crate) context: usize,
}

/// Serves until `stop` is set. `ready` is called once with the address, before the first request is taken.
///
/// # Errors
///
/// Where the address cannot be had, the caches would not fit, or the system gives no thread.
pub fn serve(offer: Offer, settings: &Settings, stop: &AtomicBool, ready: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    let served = Arc::new(Served {
        name: offer.name,
        model: offer.model,
        tokenizer: offer.tokenizer,
        template: offer.template,
        workers: offer.workers,
        fingerprint: offer.fingerprint,
        keeping: engine::keeping(offer.kv_type),
        context: offer.context,
    });
    let engine = engine::Engine::start(&served, settings.slots, settings.waiting, Pool::new(settings.cache_limit_bytes))?;
    let desk = desk::Desk { served, engine, waiting: settings.waiting };
    connections::serve(&routes::House::new(desk, settings), settings.address, stop, ready)
}
