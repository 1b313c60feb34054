//! Which tensor is stored how.

use glassbox_tensor::StorageType;

use crate::summary::Fallback;

/// What the matrices become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// Half precision.
    F16,
    /// 8 bits and a scale for 32 numbers.
    Q8_0,
    /// 4 bits and a scale for 32 numbers.
    Q4_0,
    /// 4 bits, with scales and minima of 32 numbers.
    Q4K,
    /// 6 bits, with scales of 16 numbers.
    Q6K,
    /// Simulated: whole numbers from −127 to 127 and a scale for each row, stored as F32.
    Int8PerChannel,
    /// Simulated: whole numbers from −7 to 7 and a scale for each row, stored as F32.
    Int4PerChannel,
}

impl Target {
    /// Every target, in the order of the enum.
    pub const ALL: [Self; 7] = [Self::F16, Self::Q8_0, Self::Q4_0, Self::Q4K, Self::Q6K, Self::Int8PerChannel, Self::Int4PerChannel];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
            Self::Q4K => "q4_k",
            Self::Q6K => "q6_k",
            Self::Int8PerChannel => "int8-per-channel",
            Self::Int4PerChannel => "int4-per-channel",
        }
    }

    /// The largest whole number of a simulation.
    #[must_use]
    pub const fn simulated(self) -> Option<f32> {
        match self {
            Self::Int8PerChannel => Some(127.0),
            Self::Int4PerChannel => Some(7.0),
            _ => None,
        }
    }

    /// The types that a matrix may get, the wanted one first: where a row is no whole number of blocks, the next is tried.
    ///
    /// Source: `tensor_type_fallback` of llama.cpp.
    const fn storages(self) -> &'static [StorageType] {
        match self {
            Self::F16 => &[StorageType::F16],
            Self::Q8_0 => &[StorageType::Q8_0, StorageType::F16],
            Self::Q4_0 => &[StorageType::Q4_0, StorageType::F16],
            Self::Q4K => &[StorageType::Q4K, StorageType::Q5_0, StorageType::F16],
            Self::Q6K => &[StorageType::Q6K, StorageType::Q8_0, StorageType::F16],
            Self::Int8PerChannel | Self::Int4PerChannel => &[StorageType::F32],
        }
    }

    /// `general.file_type`, by which llama.cpp describes a file.
    pub(crate) const fn file_type(self) -> u32 {
        match self {
            Self::Int8PerChannel | Self::Int4PerChannel => 0, // all F32
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q8_0 => 7,
            Self::Q4K => 14, // "Q4_K small": no matrix has more bits
            Self::Q6K => 18,
        }
    }
}

/// How one tensor is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) storage: StorageType,
    /// The largest whole number that rows are rounded to before they are stored.
    pub(crate) simulated: Option<f32>,
    /// Numbers in a row.
    columns: usize,
    is_matrix: bool,
}

impl Plan {
    /// What a person must know, where the type asked for was not possible.
    pub(crate) fn fallback(&self, tensor: &str, target: Target) -> Option<Fallback> {
        let wanted = target.storages()[0];
        (self.is_matrix && self.storage != wanted).then(|| Fallback {
            tensor: tensor.to_owned(),
            wanted: wanted.name(),
            stored: self.storage.name(),
            reason: format!("rows of {} numbers are no whole {wanted} blocks of {}", self.columns, wanted.block_len()),
        })
    }
}

/// Tensors with several axes that are no matrices to multiply with: they are added or divide angles, and llama.cpp wants them as F32.
const NEVER: &[&str] = &["position_embd.weight", "token_types.weight", "rope_freqs.weight"];

pub(crate) fn plan(name: &str, shape: &[usize], target: Target) -> Plan {
    let columns = shape.last().copied().unwrap_or(1);
    let is_matrix = shape.len() >= 2 && !NEVER.contains(&name) && !name.ends_with("_norm.weight");
    if !is_matrix {
        return Plan { storage: StorageType::F32, simulated: None, columns, is_matrix };
    }
    let fits = |storage: &&StorageType| columns.is_multiple_of(storage.block_len());
    let storage = target.storages().iter().find(fits).copied().unwrap_or(StorageType::F16);
    Plan { storage, simulated: target.simulated(), columns, is_matrix }
}
