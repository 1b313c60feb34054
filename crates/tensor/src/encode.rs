//! Numbers to stored bytes: the encoders that `quantize` writes with, beside the decoders that they are measured by.
//!
//! The plain types and Q8_0, Q5_0 and Q4_0 give the bits of ggml's reference encoders (`quantize_row_*_ref`) and of gguf-py. The
//! types with scales of scales have no one right encoding: [`superblock`](self) searches for the least squared error, and the tests
//! hold its error against that of ggml's encoders on the same numbers.

mod superblock;

use crate::{StorageType, TensorError};

/// Stores `values` as whole blocks of `storage`, rounding to what it can hold.
///
/// Numbers that are not finite, or too large for the type, come out as whatever the type makes of them: whoever wants to know
/// decodes the result.
///
/// # Errors
///
/// Where `values` is no whole number of blocks, or there is no encoder for the type.
pub fn encode(storage: StorageType, values: &[f32]) -> Result<Vec<u8>, TensorError> {
    let bytes = storage.bytes_for(values.len()).ok_or(TensorError::PartialBlock { columns: values.len(), storage })?;
    let mut out = vec![0; bytes];
    match storage {
        StorageType::F32 => each_block(values, &mut out, |[value]: &[f32; 1], out: &mut [u8; 4]| *out = value.to_le_bytes()),
        StorageType::F16 => each_block(values, &mut out, |[value]: &[f32; 1], out: &mut [u8; 2]| *out = f16(*value)),
        StorageType::Q8_0 => each_block(values, &mut out, q8_0),
        StorageType::Q5_0 => each_block(values, &mut out, q5_0),
        StorageType::Q4_0 => each_block(values, &mut out, q4_0),
        StorageType::Q4K => each_block(values, &mut out, superblock::q4_k),
        StorageType::Q6K => each_block(values, &mut out, superblock::q6_k),
        _ => return Err(TensorError::NoEncoder { storage }),
    }
    Ok(out)
}

fn each_block<const LEN: usize, const BYTES: usize>(values: &[f32], out: &mut [u8], encode: impl Fn(&[f32; LEN], &mut [u8; BYTES])) {
    for (values, out) in values.as_chunks::<LEN>().0.iter().zip(out.as_chunks_mut::<BYTES>().0) {
        encode(values, out);
    }
}

/// `d` is the largest size / 127; codes are rounded to the nearest, ties away from zero.
fn q8_0(values: &[f32; 32], out: &mut [u8; 34]) {
    let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let d = largest / 127.0;
    let inverse = inverse(d);
    out[..2].copy_from_slice(&f16(d));
    for (out, value) in out[2..].iter_mut().zip(values) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 by the choice of d; a cast saturates")]
        let code = (value * inverse).round() as i8;
        *out = code.cast_unsigned();
    }
}

/// `d` is the number of largest size / −8, so that it is the code 0; codes are cut after adding a half.
fn q4_0(values: &[f32; 32], out: &mut [u8; 18]) {
    let d = of_largest_size(values) / -8.0;
    let inverse = inverse(d);
    out[..2].copy_from_slice(&f16(d));
    let code = |value: f32| cut(value * inverse + 8.5).min(15);
    for j in 0..16 {
        out[2 + j] = code(values[j]) | code(values[j + 16]) << 4;
    }
}

/// As Q4_0 with −16, and the fifth bits apart.
fn q5_0(values: &[f32; 32], out: &mut [u8; 22]) {
    let d = of_largest_size(values) / -16.0;
    let inverse = inverse(d);
    let codes = values.map(|value| cut(value * inverse + 16.5).min(31));
    let fifth = codes.iter().enumerate().fold(0_u32, |bits, (j, code)| bits | u32::from(code >> 4) << j);
    out[..2].copy_from_slice(&f16(d));
    out[2..6].copy_from_slice(&fifth.to_le_bytes());
    for j in 0..16 {
        out[6 + j] = codes[j] & 0x0F | (codes[j + 16] & 0x0F) << 4;
    }
}

/// The first of the numbers whose size is largest, with its sign.
fn of_largest_size(values: &[f32]) -> f32 {
    values.iter().fold(0.0_f32, |largest, value| if value.abs() > largest.abs() { *value } else { largest })
}

fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// The whole part; below 0 and for what is no number 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as wanted")]
fn cut(value: f32) -> u8 {
    value as u8
}

fn f16(value: f32) -> [u8; 2] {
    half::f16::from_f32(value).to_le_bytes()
}
