//! Weights whose rows lie eight side by side, and tokens rounded to bytes: products of integers.

#[cfg(test)]
mod checks;
#[cfg(target_arch = "x86_64")]
mod fast;
mod layout;
mod portable;
mod rounding;
#[cfg(target_arch = "x86_64")]
mod simd;

#[cfg(target_arch = "x86_64")]
use std::cell::RefCell;

use glassbox_tensor::{Bytes, Matrix, StorageType};
use memmap2::MmapMut;

use self::layout::ROWS;
use self::rounding::Run;
use super::fast::{Instructions, add_bias};
use crate::{MechanismError, Workers};

/// The rows of a weight in panels of eight: the bytes of a [`Matrix`] in another order, and no more of them.
#[derive(Clone, Debug)]
pub struct Panels {
    rows: usize,
    columns: usize,
    storage: StorageType,
    bytes: Bytes,
}

impl Panels {
    /// Whether weights of this type can be laid out in panels: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K.
    #[must_use]
    pub fn exist_for(storage: StorageType) -> bool {
        layout::exists(storage)
    }

    /// Lays out several weights in one stretch of memory, in their order, so that the system can back it with large pages.
    ///
    /// - `done`  called with the index of each weight whose rows are not needed any more, from any thread
    ///
    /// # Errors
    ///
    /// Where the system gives no memory.
    ///
    /// # Panics
    ///
    /// Where [`Panels::exist_for`] denies one of the types.
    pub fn of(weights: &[Matrix], workers: &Workers, done: impl Fn(usize) + Sync) -> Result<Vec<Self>, MechanismError> {
        let bytes_of = |weight: &Matrix| {
            let row = weight.storage().bytes_for(weight.columns()).unwrap_or_default();
            weight.rows().div_ceil(ROWS) as u64 * (ROWS * row) as u64
        };
        let total: u64 = weights.iter().map(bytes_of).sum();
        let mut memory = memory(total)?;
        let mut places = Vec::with_capacity(weights.len());
        let mut rest = &mut memory[..];
        for weight in weights {
            let (place, behind) = rest.split_at_mut(bytes_of(weight) as usize);
            places.push(place);
            rest = behind;
        }
        for (index, (weight, place)) in weights.iter().zip(places).enumerate() {
            fill(weight, place, workers);
            done(index);
        }
        let (memory, mut start) = (Bytes::new(memory), 0);
        Ok(weights
            .iter()
            .map(|weight| {
                let end = start + bytes_of(weight) as usize;
                let bytes = memory.slice(start..end).expect("the memory holds all of them");
                start = end;
                Self { rows: weight.rows(), columns: weight.columns(), storage: weight.storage(), bytes }
            })
            .collect())
    }

    /// Number of rows (outputs).
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row (inputs).
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How the numbers are stored.
    #[must_use]
    pub fn storage(&self) -> StorageType {
        self.storage
    }

    /// Row `row` as a matrix of its own, byte for byte what the panels were made of.
    #[must_use]
    pub fn row(&self, row: usize) -> Matrix {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let bytes = layout::row(self.storage, self.panels_from(row / ROWS * ROWS, 1), row % ROWS);
        Matrix::new(1, self.columns, self.storage, Bytes::new(bytes)).expect("a row of a sound matrix")
    }

    /// As [`Matrix::decode_row`].
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        self.row(row).decode_row(0, out);
    }

    /// What [`super::project`] computes with instead of `x`: every number of every token, rounded to its code and scaled back.
    ///
    /// In each run of 32 inputs the largest magnitude is code 127.
    ///
    /// - `x`  [token, in]
    #[must_use]
    pub fn rounded(&self, x: &[f32]) -> Vec<f32> {
        let runs = rounding::round(x, &Workers::inline());
        runs.iter().flat_map(|run| run.codes.map(|code| run.scale * f32::from(code))).collect()
    }

    fn panels_from(&self, row: usize, panels: usize) -> &[u8] {
        let panel = self.bytes.len() / self.rows.div_ceil(ROWS).max(1);
        &self.bytes[row / ROWS * panel..][..panels * panel]
    }

    /// See [`super::project`].
    pub(super) fn project(&self, instructions: Instructions, x: &[f32], bias: Option<&[f32]>, out: &mut [f32], workers: &Workers) {
        if out.is_empty() {
            return;
        }
        let tokens = rounding::round(x, workers);
        if x.len() == self.columns {
            workers.split_rows(out, 1, self.rows_a_piece(workers), |first, out| {
                self.many_tokens(instructions, &tokens, bias, first, &mut [out]);
            });
        } else {
            workers.split_columns(out, self.rows, PANELS * ROWS, |first, strip| {
                self.many_tokens(instructions, &tokens, bias, first, strip);
            });
        }
    }

    /// Rows for one piece of one-token work: a few pieces a thread, none too small to be worth waking one.
    fn rows_a_piece(&self, workers: &Workers) -> usize {
        if workers.threads() == 1 {
            return self.rows;
        }
        let fair = self.rows.div_ceil(4 * workers.threads());
        fair.max(SMALLEST_PIECE.div_ceil(self.columns)).next_multiple_of(ROWS)
    }

    /// Outputs `first..` of every token; each part of `out` holds those of one.
    fn many_tokens(&self, instructions: Instructions, tokens: &[Run], bias: Option<&[f32]>, first: usize, out: &mut [&mut [f32]]) {
        let panels = self.panels_from(first, out[0].len().div_ceil(ROWS));
        match instructions {
            Instructions::Portable => {
                let runs = tokens.len() / out.len();
                for o in 0..out[0].len() {
                    let row = layout::row(self.storage, self.panels_from(first + o, 1), o % ROWS);
                    for (token, out) in tokens.chunks_exact(runs).zip(&mut *out) {
                        out[o] = portable::dot(self.storage, &row, token);
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => DECODED.with_borrow_mut(|decoded| fast::project(self.storage, panels, tokens, decoded, out)),
        }
        out.iter_mut().for_each(|out| add_bias(bias, first, out));
    }
}

const SMALLEST_PIECE: usize = 1 << 18; // multiplications: some 10 µs
const PANELS: usize = 8; // 64 rows: with 2048 inputs 144 KiB decoded

#[cfg(target_arch = "x86_64")]
thread_local! {
    /// Decoded panels of the piece in work; kept, because fresh memory costs more than the decoding.
    static DECODED: RefCell<Vec<std::arch::x86_64::__m256i>> = const { RefCell::new(Vec::new()) };
}

/// Zeroed memory of whole pages.
fn memory(bytes: u64) -> Result<MmapMut, MechanismError> {
    let len = usize::try_from(bytes).map_err(|_| MechanismError::NoWeightMemory { bytes })?;
    let memory = MmapMut::map_anon(len.max(1)).map_err(|_| MechanismError::NoWeightMemory { bytes })?;
    // A kernel without large pages refuses, and loses some speed only.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

fn fill(weight: &Matrix, place: &mut [u8], workers: &Workers) {
    let (rows, storage) = (weight.rows(), weight.storage());
    if rows == 0 || weight.columns() == 0 {
        return;
    }
    let panel = place.len() / rows.div_ceil(ROWS);
    let nothing = vec![0; panel / ROWS]; // below the last row
    workers.split_rows(place, panel, (1 << 20) / panel + 1, |first, panels| {
        for (p, out) in panels.chunks_exact_mut(panel).enumerate() {
            let from = (first + p) * ROWS;
            let row = |r| if from + r < rows { weight.row_bytes(from + r) } else { &nothing };
            layout::interleave(storage, std::array::from_fn(row), out);
        }
    });
}
