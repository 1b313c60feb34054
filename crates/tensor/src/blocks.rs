//! What the stored bytes mean: one decoder a storage type, written to be read.

use crate::StorageType;

/// Decodes whole blocks of `storage` into `out`.
pub(crate) fn decode(storage: StorageType, bytes: &[u8], out: &mut [f32]) {
    match storage {
        StorageType::F32 => {
            for (value, bytes) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                *value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
        StorageType::F16 => {
            for (value, bytes) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *value = half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
            }
        }
        StorageType::Bf16 => {
            for (value, bytes) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *value = half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
            }
        }
        _ => unreachable!("block types follow"),
    }
}
