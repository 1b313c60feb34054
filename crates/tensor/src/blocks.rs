//! What the stored bytes mean: one decoder a storage type, written to be read.
//!
//! The layouts are those of GGUF (`ggml-common.h`), little-endian. Every number is the value of the plain formula given with its
//! decoder, each operation rounded once to `f32` in the order written (no fused multiply-add), which is also the order of ggml's
//! `dequantize_row_*` and of gguf-py: the three give the same bits. Fast decoders elsewhere must equal these bit for bit.
//!
//! The f16 scales are data from a file: infinities and NaNs come out as such and are for the reader of the numbers to report.

use crate::StorageType;

/// Decodes whole blocks of `storage` into `out`.
pub(crate) fn decode(storage: StorageType, bytes: &[u8], out: &mut [f32]) {
    match storage {
        StorageType::F32 => each_block(bytes, out, |bytes: &[u8; 4], [out]: &mut [f32; 1]| *out = f32::from_le_bytes(*bytes)),
        StorageType::F16 => each_block(bytes, out, |bytes, [out]: &mut [f32; 1]| *out = f16(*bytes)),
        StorageType::Bf16 => each_block(bytes, out, |bytes, [out]: &mut [f32; 1]| *out = bf16(*bytes)),
        StorageType::Q4_0 => each_block(bytes, out, q4_0),
        StorageType::Q4_1 => each_block(bytes, out, q4_1),
        StorageType::Q5_0 => each_block(bytes, out, q5_0),
        StorageType::Q5_1 => each_block(bytes, out, q5_1),
        StorageType::Q8_0 => each_block(bytes, out, q8_0),
        StorageType::Q4K => each_block(bytes, out, q4_k),
        StorageType::Q5K => each_block(bytes, out, q5_k),
        StorageType::Q6K => each_block(bytes, out, q6_k),
        StorageType::Q2K => each_block(bytes, out, q2_k),
        StorageType::Q3K => each_block(bytes, out, q3_k),
        StorageType::Iq4Nl => each_block(bytes, out, iq4_nl),
        StorageType::Mxfp4 => each_block(bytes, out, mxfp4),
    }
}

fn each_block<const BYTES: usize, const LEN: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn(&[u8; BYTES], &mut [f32; LEN])) {
    for (bytes, out) in bytes.as_chunks::<BYTES>().0.iter().zip(out.as_chunks_mut::<LEN>().0) {
        decode(bytes, out);
    }
}

/// `d (code − 8)`. Bytes: `d` f16, 16 bytes of codes; low nibbles are numbers 0 to 15, high nibbles 16 to 31.
fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    for j in 0..16 {
        let codes = block[2 + j];
        out[j] = d * centred(codes & 0x0F, 8);
        out[j + 16] = d * centred(codes >> 4, 8);
    }
}

/// `d code + m`. Bytes: `d` f16, `m` f16, codes as in Q4_0.
fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (f16_at(block, 0), f16_at(block, 2));
    for j in 0..16 {
        let codes = block[4 + j];
        out[j] = d * f32::from(codes & 0x0F) + m;
        out[j + 16] = d * f32::from(codes >> 4) + m;
    }
}

/// `d (code − 16)`. Bytes: `d` f16, 32 fifth bits (bit `j` belongs to number `j`), low nibbles of the codes as in Q4_0.
fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    let fifth = u32::from_le_bytes([block[2], block[3], block[4], block[5]]);
    for j in 0..16 {
        let codes = block[6 + j];
        out[j] = d * centred(codes & 0x0F | bit(fifth, j) << 4, 16);
        out[j + 16] = d * centred(codes >> 4 | bit(fifth, j + 16) << 4, 16);
    }
}

/// `d code + m`. Bytes: `d` f16, `m` f16, fifth bits and low nibbles as in Q5_0.
fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (f16_at(block, 0), f16_at(block, 2));
    let fifth = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    for j in 0..16 {
        let codes = block[8 + j];
        out[j] = d * f32::from(codes & 0x0F | bit(fifth, j) << 4) + m;
        out[j + 16] = d * f32::from(codes >> 4 | bit(fifth, j + 16) << 4) + m;
    }
}

/// `d code`. Bytes: `d` f16, 32 signed codes.
fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    for (out, code) in out.iter_mut().zip(&block[2..]) {
        *out = d * f32::from(code.cast_signed());
    }
}

/// `(d s) code − (dmin m)` with `s` and `m` of the sub-block of 32.
///
/// Bytes: `d` f16, `dmin` f16, 12 bytes of six-bit `s` and `m` ([`scale_and_minimum`]), 128 bytes of codes: every 32 bytes hold
/// 64 numbers, first all low nibbles, then all high nibbles.
fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, d_min) = (f16_at(block, 0), f16_at(block, 2));
    for sub in 0..8 {
        let (s, m) = scale_and_minimum(&block[4..16], sub);
        let (scale, minimum) = (d * f32::from(s), d_min * f32::from(m));
        for j in 0..32 {
            let low = nibble(block[16 + sub / 2 * 32 + j], sub % 2);
            out[sub * 32 + j] = scale * f32::from(low) - minimum;
        }
    }
}

/// `(d s) code − (dmin m)` with `s` and `m` of the sub-block of 32.
///
/// Bytes: as Q4_K, with 32 bytes of fifth bits between scales and nibbles; bit `i` of byte `j` belongs to number `j` of sub-block `i`.
fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, d_min) = (f16_at(block, 0), f16_at(block, 2));
    for sub in 0..8 {
        let (s, m) = scale_and_minimum(&block[4..16], sub);
        let (scale, minimum) = (d * f32::from(s), d_min * f32::from(m));
        for j in 0..32 {
            let low = nibble(block[48 + sub / 2 * 32 + j], sub % 2);
            let fifth = (block[16 + j] >> sub) & 1;
            out[sub * 32 + j] = scale * f32::from(low | fifth << 4) - minimum;
        }
    }
}

/// `(d s) (code − 32)` with `s` of the sub-block of 16, signed.
///
/// Bytes: 128 of low nibbles, 64 of high bit pairs, 16 signed `s`, `d` f16. Each half of 128 numbers has four rows of 32: rows 0
/// and 1 are the low nibbles of its 64 nibble bytes, rows 2 and 3 the high ones; bit pair `r` of its byte `j` belongs to row `r`.
fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let d = f16_at(block, 208);
    for half in 0..2 {
        for row in 0..4 {
            for j in 0..32 {
                let low = nibble(block[half * 64 + row % 2 * 32 + j], row / 2);
                let high = (block[128 + half * 32 + j] >> (2 * row)) & 3;
                let s = block[192 + half * 8 + row * 2 + j / 16].cast_signed();
                out[half * 128 + row * 32 + j] = (d * f32::from(s)) * centred(low | high << 4, 32);
            }
        }
    }
}

/// `(d s) code − (dmin m)` with `s` and `m` of the sub-block of 16.
///
/// Bytes: 16 bytes with `s` in the low and `m` in the high nibble, 64 of codes ([`pair`]), `d` f16, `dmin` f16.
fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, d_min) = (f16_at(block, 80), f16_at(block, 82));
    for (index, out) in out.iter_mut().enumerate() {
        let both = block[index / 16];
        let (scale, minimum) = (d * f32::from(both & 0x0F), d_min * f32::from(both >> 4));
        *out = scale * f32::from(pair(&block[16..80], index)) - minimum;
    }
}

/// `(d (s − 32)) (code − 4)` with `s` of the sub-block of 16.
///
/// Bytes: 32 of third bits (bit `r` of byte `j` belongs to number `j` of the `r`-th 32), 64 of low bit pairs ([`pair`]), 12 of
/// six-bit `s`, `d` f16. Of `s`, the low nibbles of sub-blocks 0 to 7 are those of bytes 0 to 7, of 8 to 15 the high ones; their
/// upper bit pairs lie in bytes 8 to 11, pair `i / 4` of byte `8 + i mod 4`.
fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = f16_at(block, 108);
    let scales = &block[96..108];
    for (index, out) in out.iter_mut().enumerate() {
        let sub = index / 16;
        let s = nibble(scales[sub % 8], sub / 8) | ((scales[8 + sub % 4] >> (2 * (sub / 4))) & 3) << 4;
        let third = (block[index % 32] >> (index / 32)) & 1;
        *out = (d * centred(s, 32)) * centred(pair(&block[32..96], index) | third << 2, 4);
    }
}

/// `d step(code)` with the steps of [`IQ4_NL_STEPS`]. Bytes: `d` f16, codes as in Q4_0.
fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    for j in 0..16 {
        let codes = block[2 + j];
        out[j] = d * f32::from(IQ4_NL_STEPS[usize::from(codes & 0x0F)]);
        out[j + 16] = d * f32::from(IQ4_NL_STEPS[usize::from(codes >> 4)]);
    }
}

/// `2^(e − 128) step(code)` with the steps of [`MXFP4_STEPS`], which are twice the numbers of the OCP microscaling format.
///
/// Bytes: `e`, codes as in Q4_0. The powers below the smallest normal number are kept; the format's "not a number" (`e` = 255) is
/// read as the power that follows, as ggml reads it.
fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let e = u32::from(block[0]);
    let d = f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 });
    for j in 0..16 {
        let codes = block[1 + j];
        out[j] = d * f32::from(MXFP4_STEPS[usize::from(codes & 0x0F)]);
        out[j + 16] = d * f32::from(MXFP4_STEPS[usize::from(codes >> 4)]);
    }
}

/// The steps of IQ4_NL (`kvalues_iq4nl` of ggml).
const IQ4_NL_STEPS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The steps of MXFP4, doubled so that they are whole (`kvalues_mxfp4` of ggml); −0 is read as 0.
const MXFP4_STEPS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The bit pair of number `index` of 256: each half of 128 numbers has four rows of 32, and pair `r` of its byte `j` belongs to row `r`.
fn pair(pairs: &[u8], index: usize) -> u8 {
    let (half, row, j) = (index / 128, index / 32 % 4, index % 32);
    (pairs[half * 32 + j] >> (2 * row)) & 3
}

/// The six-bit scale and minimum of sub-block `sub` (0 to 7) of Q4_K and Q5_K.
///
/// The first four lie in the low six bits of bytes 0 to 3 and 4 to 7. The last four have their low nibbles in bytes 8 to 11 (scale
/// low, minimum high) and their upper two bits in the upper bits of bytes 0 to 3 and 4 to 7.
fn scale_and_minimum(packed: &[u8], sub: usize) -> (u8, u8) {
    if sub < 4 {
        return (packed[sub] & 0x3F, packed[sub + 4] & 0x3F);
    }
    let scale = packed[sub + 4] & 0x0F | packed[sub - 4] >> 6 << 4;
    let minimum = packed[sub + 4] >> 4 | packed[sub] >> 6 << 4;
    (scale, minimum)
}

/// The low (`which` = 0) or high (1) nibble.
fn nibble(byte: u8, which: usize) -> u8 {
    (byte >> (4 * which)) & 0x0F
}

/// Bit `index` of `bits`, 0 or 1.
fn bit(bits: u32, index: usize) -> u8 {
    u8::from((bits >> index) & 1 == 1)
}

/// `code − offset`, exact.
fn centred(code: u8, offset: i16) -> f32 {
    f32::from(i16::from(code) - offset)
}

fn f16_at(block: &[u8], at: usize) -> f32 {
    f16([block[at], block[at + 1]])
}

fn f16(bytes: [u8; 2]) -> f32 {
    half::f16::from_le_bytes(bytes).to_f32()
}

fn bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}
