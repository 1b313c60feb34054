//! One file a command.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod embed;
pub(crate) mod evidence;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod layers;
pub(crate) mod models;
mod pull;
pub(crate) mod quantize;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod score;
pub(crate) mod serve;
pub(crate) mod sites;
pub(crate) mod test;
