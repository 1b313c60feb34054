//! Where every byte of a stored block goes when eight rows lie side by side. A rearrangement only: a panel is exactly as large as its
//! rows, and every row can be read back byte for byte.

use glassbox_tensor::StorageType;

/// Weight rows in a panel: one for each 32-bit lane of a vector register.
pub(super) const ROWS: usize = 8;

/// A part of a stored block, `len` bytes from `at`. In the panel it begins at `8 at`.
struct Part {
    at: usize,
    len: usize,
    order: Order,
}

/// How the eight rows of a part alternate.
#[derive(Clone, Copy)]
enum Order {
    /// Two bytes of the first row, two of the second …: the scales of eight rows make one register of halves.
    Halves,
    /// Four bytes of each: a register holds four neighbouring codes of every row.
    Words,
    /// As `Words`, one word a row, with its 32 bits sorted: bit `j` of byte `i` is the fifth bit of code `4j + i`, which belongs to
    /// byte `i` of register `j`.
    FifthBits,
}

const fn part(at: usize, len: usize, order: Order) -> Part {
    Part { at, len, order }
}

/// The parts of a block; `None` for types that have no panels.
fn parts(storage: StorageType) -> Option<&'static [Part]> {
    use Order::{FifthBits, Halves, Words};
    Some(match storage {
        StorageType::Q4_0 => const { &[part(0, 2, Halves), part(2, 16, Words)] },
        StorageType::Q4_1 => const { &[part(0, 4, Halves), part(4, 16, Words)] },
        StorageType::Q5_0 => const { &[part(0, 2, Halves), part(2, 4, FifthBits), part(6, 16, Words)] },
        StorageType::Q5_1 => const { &[part(0, 4, Halves), part(4, 4, FifthBits), part(8, 16, Words)] },
        StorageType::Q8_0 => const { &[part(0, 2, Halves), part(2, 32, Words)] },
        StorageType::Q4K => const { &[part(0, 4, Halves), part(4, 12, Words), part(16, 128, Words)] },
        StorageType::Q5K => const { &[part(0, 4, Halves), part(4, 12, Words), part(16, 32, Words), part(48, 128, Words)] },
        StorageType::Q6K => const { &[part(0, 208, Words), part(208, 2, Halves)] },
        _ => return None,
    })
}

/// Whether weights of this type can be laid out in panels.
pub(super) fn exists(storage: StorageType) -> bool {
    parts(storage).is_some()
}

/// Lays rows side by side, block after block.
///
/// - `rows`  eight rows of one length
/// - `out`   eight times as long as a row
pub(super) fn interleave(storage: StorageType, rows: [&[u8]; ROWS], out: &mut [u8]) {
    let parts = parts(storage).expect("panels are made of types that have them");
    let bytes = storage.block_bytes();
    for (b, out) in out.chunks_exact_mut(ROWS * bytes).enumerate() {
        for Part { at, len, order } in parts {
            let (from, to) = (rows.map(|row| &row[b * bytes + at..][..*len]), &mut out[ROWS * at..ROWS * (at + len)]);
            match order {
                Order::Halves => alternate::<2>(from, to),
                Order::Words => alternate::<4>(from, to),
                Order::FifthBits => {
                    let words = from.map(|bits| sorted(word(bits)).to_le_bytes());
                    to.copy_from_slice(words.as_flattened());
                }
            }
        }
    }
}

/// Row `r` of a panel as it was stored.
pub(super) fn row(storage: StorageType, panel: &[u8], r: usize) -> Vec<u8> {
    let parts = parts(storage).expect("panels are made of types that have them");
    let bytes = storage.block_bytes();
    let mut row = vec![0; panel.len() / ROWS];
    for (panel, block) in panel.chunks_exact(ROWS * bytes).zip(row.chunks_exact_mut(bytes)) {
        for Part { at, len, order } in parts {
            let (from, to) = (&panel[ROWS * at..ROWS * (at + len)], &mut block[*at..at + len]);
            match order {
                Order::Halves => take::<2>(from, to, r),
                Order::Words => take::<4>(from, to, r),
                Order::FifthBits => {
                    take::<4>(from, to, r);
                    to.copy_from_slice(&unsorted(word(to)).to_le_bytes());
                }
            }
        }
    }
    row
}

fn alternate<const UNIT: usize>(from: [&[u8]; ROWS], to: &mut [u8]) {
    let from = from.map(|row| row.as_chunks::<UNIT>().0);
    for (u, to) in to.as_chunks_mut::<UNIT>().0.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        *to = from.map(|row| row[u]);
    }
}

fn take<const UNIT: usize>(from: &[u8], to: &mut [u8], r: usize) {
    for (from, to) in from.chunks_exact(ROWS * UNIT).zip(to.as_chunks_mut::<UNIT>().0) {
        to.copy_from_slice(&from[r * UNIT..(r + 1) * UNIT]);
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("a word has four bytes"))
}

/// Bit `4j + i` goes to bit `8i + j`.
fn sorted(bits: u32) -> u32 {
    let mut out = 0;
    for i in 0..4 {
        // Every fourth bit from `i`, drawn together.
        let mut x = bits >> i & 0x1111_1111;
        x = (x | x >> 3) & 0x0303_0303;
        x = (x | x >> 6) & 0x000F_000F;
        x = (x | x >> 12) & 0xFF;
        out |= x << (8 * i);
    }
    out
}

/// The opposite of [`sorted`].
fn unsorted(bits: u32) -> u32 {
    (0..32).fold(0, |out, at| out | (bits >> (8 * (at % 4) + at / 4) & 1) << at)
}

#[cfg(test)]
mod tests {
    use super::{sorted, unsorted};

    #[test]
    fn fifth_bits_go_to_the_byte_of_their_register_and_back() {
        for at in 0..32 {
            assert_eq!(sorted(1 << at), 1 << (8 * (at % 4) + at / 4));
            assert_eq!(unsorted(sorted(1 << at)), 1 << at);
        }
        assert_eq!(unsorted(sorted(0xDEAD_BEEF)), 0xDEAD_BEEF);
    }
}
