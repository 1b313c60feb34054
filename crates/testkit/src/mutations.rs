use std::path::{Path, PathBuf};

use crate::Values;

/// `count` files that are each a seed of `fuzz/seeds/<target>`, changed in one to four places; the same ones on every run. The environment
/// variable `GLASSBOX_MUTATIONS` asks for more of them than a quick test wants (`make mutations`).
///
/// A change sets or removes bytes, doubles a piece, puts in a piece of another seed, or writes a number over an eight-byte word.
///
/// # Panics
///
/// Where the repository has no seeds for `target`.
pub fn mutations(target: &str, count: usize) -> impl Iterator<Item = Vec<u8>> {
    let seeds: Vec<Vec<u8>> = seeds(target).into_iter().map(|(_, bytes)| bytes).collect();
    let mut values = Values::seeded(7);
    let more = std::env::var("GLASSBOX_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    (0..count.max(more)).map(move |index| {
        let mut bytes = seeds[index % seeds.len()].clone();
        for _ in 0..=values.below(4) {
            let other = &seeds[values.below(seeds.len())];
            change(&mut bytes, other, &mut values);
        }
        bytes
    })
}

/// The seeds of `fuzz/seeds/<target>` by name: files that a reader accepts as they are, or a fuzzer starts from nothing.
///
/// # Panics
///
/// Where the repository has no seeds for `target`.
#[must_use]
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("the seeds are committed").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let seed = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, std::fs::read(file).expect("the seeds are committed"))
    };
    files.iter().map(seed).collect()
}

fn change(bytes: &mut Vec<u8>, other: &[u8], values: &mut Values) {
    const LONGEST: usize = 40; // bytes of a piece
    const NUMBERS: [u64; 8] = [0, 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];
    let piece = |bytes: &[u8], values: &mut Values| {
        let start = values.below(bytes.len().max(1));
        bytes[start.min(bytes.len())..(start + 1 + values.below(LONGEST)).min(bytes.len())].to_vec()
    };
    let at = values.below(bytes.len().max(1)).min(bytes.len());
    match values.below(5) {
        0 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte = values.bits() as u8),
        1 => drop(bytes.drain(at..(at + 1 + values.below(LONGEST)).min(bytes.len()))),
        2 => {
            let doubled = piece(bytes, values);
            bytes.splice(at..at, doubled);
        }
        3 => {
            let foreign = piece(other, values);
            bytes.splice(at..at, foreign);
        }
        _ => {
            if let Some(word) = bytes.get_mut(at..at + 8) {
                word.copy_from_slice(&NUMBERS[values.below(NUMBERS.len())].to_le_bytes());
            }
        }
    }
}
