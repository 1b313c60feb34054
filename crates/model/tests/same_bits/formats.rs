//! A tiny model in memory whose matrices are stored in any storage type that the program decodes.

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::Kernels;
use glassbox_model::Model;
use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

const D_MODEL: usize = 256;
const HIDDEN: usize = 64;
const VOCAB: usize = 40;
const LAYERS: usize = 2;

/// A decoder of two layers, two heads of 16 on one key-value head. Matrices whose rows are no whole blocks are stored as Q8_0, as quantised
/// files of real models do.
pub(crate) fn model_of(storage: StorageType, kernels: Kernels) -> Model {
    let bytes = file_of(storage);
    let checkpoint = Checkpoint::from_gguf_bytes("tiny.gguf", Bytes::new(bytes)).expect("the file is sound");
    Model::open(&checkpoint, kernels).unwrap_or_else(|error| panic!("{storage}: {error}"))
}

fn file_of(storage: StorageType) -> Vec<u8> {
    let mut random = Values::seeded(9);
    let blocks = Blocks::of(storage, &mut random);
    let small = Blocks::of(StorageType::Q8_0, &mut random);
    let ones = |count: usize| (StorageType::F32, 1.0_f32.to_le_bytes().repeat(count));
    let mut tensors: Vec<(String, Vec<usize>, StorageType, Vec<u8>)> = Vec::new();
    let mut matrix = |name: String, rows: usize, columns: usize| {
        let blocks = if columns.is_multiple_of(storage.block_len()) { &blocks } else { &small };
        (name, vec![columns, rows], blocks.storage, blocks.matrix(rows, columns, &mut random))
    };
    tensors.push(matrix("token_embd.weight".into(), VOCAB, D_MODEL));
    tensors.push(matrix("output.weight".into(), VOCAB, D_MODEL));
    for layer in 0..LAYERS {
        for (name, rows, columns) in [
            ("attn_q", 32, D_MODEL),
            ("attn_k", 16, D_MODEL),
            ("attn_v", 16, D_MODEL),
            ("attn_output", D_MODEL, 32),
            ("ffn_gate", HIDDEN, D_MODEL),
            ("ffn_up", HIDDEN, D_MODEL),
            ("ffn_down", D_MODEL, HIDDEN),
        ] {
            tensors.push(matrix(format!("blk.{layer}.{name}.weight"), rows, columns));
        }
    }
    let norms = (0..LAYERS).flat_map(|layer| ["attn_norm", "ffn_norm"].map(|name| format!("blk.{layer}.{name}.weight")));
    for name in norms.chain(["output_norm.weight".to_owned()]) {
        let (storage, bytes) = ones(D_MODEL);
        tensors.push((name, vec![D_MODEL], storage, bytes));
    }

    let mut file = Vec::new();
    file.extend(b"GGUF\x03\0\0\0");
    file.extend((tensors.len() as u64).to_le_bytes());
    let numbers: [(&str, u32); 9] = [
        ("context_length", 4096),
        ("embedding_length", 256),
        ("block_count", 2),
        ("feed_forward_length", 64),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 16),
        ("attention.value_length", 16),
        ("rope.dimension_count", 16),
    ];
    file.extend((numbers.len() as u64 + 2).to_le_bytes());
    let text = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.as_bytes());
    };
    text(&mut file, "general.architecture");
    file.extend(8_u32.to_le_bytes());
    text(&mut file, "llama");
    text(&mut file, "llama.attention.layer_norm_rms_epsilon");
    file.extend(6_u32.to_le_bytes());
    file.extend(1e-5_f32.to_le_bytes());
    for (key, number) in numbers {
        text(&mut file, &format!("llama.{key}"));
        file.extend(4_u32.to_le_bytes());
        file.extend(number.to_le_bytes());
    }
    let mut offset = 0_u64;
    for (name, sizes, storage, bytes) in &tensors {
        text(&mut file, name);
        file.extend((sizes.len() as u32).to_le_bytes());
        sizes.iter().for_each(|size| file.extend((*size as u64).to_le_bytes()));
        file.extend(number_of(*storage).to_le_bytes());
        file.extend(offset.to_le_bytes());
        offset += (bytes.len() as u64).next_multiple_of(32);
    }
    file.resize(file.len().next_multiple_of(32), 0);
    for (.., bytes) in &tensors {
        file.extend(bytes);
        file.resize(file.len().next_multiple_of(32), 0);
    }
    file
}

/// Some blocks of a storage type that decode to ordinary weights.
struct Blocks {
    storage: StorageType,
    blocks: Vec<Vec<u8>>,
}

impl Blocks {
    /// Draws bytes until enough blocks hold numbers of the size of weights, whatever the type means by them.
    fn of(storage: StorageType, random: &mut Values) -> Self {
        let mut blocks = Vec::new();
        let mut numbers = vec![0.0; storage.block_len()];
        while blocks.len() < 24 {
            let bytes: Vec<u8> = (0..storage.block_bytes()).map(|_| random.below(256) as u8).collect();
            let block = Matrix::new(1, storage.block_len(), storage, Bytes::new(bytes.clone())).expect("one block");
            block.decode_row(0, &mut numbers);
            let largest = numbers.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            if numbers.iter().all(|x| x.is_finite()) && (0.02..0.3).contains(&largest) {
                blocks.push(bytes);
            }
        }
        Self { storage, blocks }
    }

    fn matrix(&self, rows: usize, columns: usize, random: &mut Values) -> Vec<u8> {
        let count = rows * columns / self.storage.block_len();
        (0..count).flat_map(|_| &self.blocks[random.below(self.blocks.len())]).copied().collect()
    }
}

/// The number of a storage type in GGUF (`ggml.h`, `enum ggml_type`).
fn number_of(storage: StorageType) -> u32 {
    match storage {
        StorageType::F32 => 0,
        StorageType::F16 => 1,
        StorageType::Q4_0 => 2,
        StorageType::Q4_1 => 3,
        StorageType::Q5_0 => 6,
        StorageType::Q5_1 => 7,
        StorageType::Q8_0 => 8,
        StorageType::Q2K => 10,
        StorageType::Q3K => 11,
        StorageType::Q4K => 12,
        StorageType::Q5K => 13,
        StorageType::Q6K => 14,
        StorageType::Iq4Nl => 20,
        StorageType::Bf16 => 30,
        StorageType::Mxfp4 => 39,
        other => panic!("{other} has a number in GGUF: add it here"),
    }
}
