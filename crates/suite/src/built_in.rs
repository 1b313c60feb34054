//! The suites that every binary carries, so that a fresh machine can test a model without another file.

use std::io;

use crate::{Suite, SuiteError};

/// Names of the built-in suites.
pub const BUILT_IN_SUITES: [&str; 6] = ["evidence", "order", "rewrite", "memory", "length", "conflict"];

/// A built-in suite by its name; none where there is no such suite.
///
/// Errors: a shipped suite that does not fit its data; a test reads both.
#[must_use]
pub fn built_in(name: &str) -> Option<Result<Suite, SuiteError>> {
    let path = format!("built-in/{name}.yaml");
    let yaml = embedded(&format!("{name}.yaml")).filter(|_| BUILT_IN_SUITES.contains(&name))?;
    Some(Suite::parse(&path, yaml, &|file| {
        let bytes = embedded(file).map(<[u8]>::to_vec);
        (format!("built-in/{file}"), bytes.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is not built in")))
    }))
}

fn embedded(file: &str) -> Option<&'static [u8]> {
    match file {
        "evidence.yaml" => Some(include_bytes!("../../../suites/evidence.yaml")),
        "length.yaml" => Some(include_bytes!("../../../suites/length.yaml")),
        "conflict.yaml" => Some(include_bytes!("../../../suites/conflict.yaml")),
        "data/conflict.en.jsonl" => Some(include_bytes!("../../../suites/data/conflict.en.jsonl")),
        "data/conflict.zh.jsonl" => Some(include_bytes!("../../../suites/data/conflict.zh.jsonl")),
        "rewrite.yaml" => Some(include_bytes!("../../../suites/rewrite.yaml")),
        "memory.yaml" => Some(include_bytes!("../../../suites/memory.yaml")),
        "order.yaml" => Some(include_bytes!("../../../suites/order.yaml")),
        "data/evidence.en.jsonl" => Some(include_bytes!("../../../suites/data/evidence.en.jsonl")),
        "data/evidence.zh.jsonl" => Some(include_bytes!("../../../suites/data/evidence.zh.jsonl")),
        _ => None,
    }
}
