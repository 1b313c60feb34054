//! What was done, for people and for machines.

use std::collections::BTreeMap;

use glassbox_tensor::StorageType;
use serde::Serialize;

use crate::Target;
use crate::source::Source;

/// What a quantisation did.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Name of the target.
    pub target: &'static str,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Whether the file holds a tokenizer; a folder may have none.
    pub tokenizer: bool,
    /// By storage type, in the order of the types.
    pub types: Vec<TypeSummary>,
    /// Tensors that could not have the type asked for.
    pub fallbacks: Vec<Fallback>,
    /// What llama.cpp computes otherwise than the model's definition, in sentences without a full stop.
    pub otherwise_in_llama_cpp: Vec<String>,
    sums: BTreeMap<StorageType, Sums>,
}

/// The tensors of one storage type.
#[derive(Clone, Debug, Serialize)]
pub struct TypeSummary {
    /// Its name.
    pub storage: &'static str,
    /// Tensors stored so.
    pub tensors: usize,
    /// Numbers in them.
    pub numbers: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Root mean square of the difference between weights and stored weights.
    pub rms_error: f64,
    /// The same divided by the root mean square of the weights.
    pub relative_rms_error: f64,
}

/// A tensor that could not have the type asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// Its name.
    pub tensor: String,
    /// The type asked for.
    pub wanted: &'static str,
    /// The type it has.
    pub stored: &'static str,
    /// Why.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    tensors: usize,
    numbers: u64,
    bytes: u64,
    squared_error: f64,
    squared: f64,
}

impl Summary {
    pub(crate) fn new(target: Target, source: &Source<'_>) -> Self {
        Self {
            target: target.name(),
            file_bytes: 0,
            tokenizer: source.has_tokenizer(),
            types: Vec::new(),
            fallbacks: Vec::new(),
            otherwise_in_llama_cpp: source.otherwise_in_llama_cpp().to_vec(),
            sums: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, storage: StorageType, numbers: usize, bytes: usize, squared_error: f64, squared: f64) {
        let sums = self.sums.entry(storage).or_default();
        sums.tensors += 1;
        sums.numbers += numbers as u64;
        sums.bytes += bytes as u64;
        sums.squared_error += squared_error;
        sums.squared += squared;
    }

    pub(crate) fn finish(&mut self) {
        let ratio = |part: f64, whole: f64| if whole > 0.0 { (part / whole).sqrt() } else { 0.0 };
        let summary = |(storage, sums): (&StorageType, &Sums)| TypeSummary {
            storage: storage.name(),
            tensors: sums.tensors,
            numbers: sums.numbers,
            bytes: sums.bytes,
            rms_error: ratio(sums.squared_error, sums.numbers as f64),
            relative_rms_error: ratio(sums.squared_error, sums.squared),
        };
        self.types = self.sums.iter().map(summary).collect();
    }
}
