//! A tiny model in memory whose matrices are stored in any storage type that the program decodes.

use glassbox_checkpoint::{Checkpoint, CheckpointError, GgufValue, GgufWriter};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Activations, Model};
use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

const D_MODEL: usize = 256;
const HIDDEN: usize = 64;
const VOCAB: usize = 40;
const LAYERS: usize = 2;

/// A decoder of two layers, two heads of 16 on one key-value head. Matrices whose rows are no whole blocks are stored as Q8_0, as quantised
/// files of real models do.
pub(crate) fn model_of(storage: StorageType, kernels: Kernels) -> Model {
    model_with(storage, kernels, Activations::Exact)
}

pub(crate) fn model_with(storage: StorageType, kernels: Kernels, activations: Activations) -> Model {
    let bytes = file_of(storage);
    let checkpoint = Checkpoint::from_gguf_bytes("tiny.gguf", Bytes::new(bytes)).expect("the file is sound");
    Model::open_with(&checkpoint, kernels, activations, &Workers::new(2)).unwrap_or_else(|error| panic!("{storage}: {error}"))
}

fn file_of(storage: StorageType) -> Vec<u8> {
    let mut random = Values::seeded(9);
    let blocks = Blocks::of(storage, &mut random);
    let small = Blocks::of(StorageType::Q8_0, &mut random);
    let ones = |count: usize| (StorageType::F32, 1.0_f32.to_le_bytes().repeat(count));
    let mut tensors: Vec<(String, Vec<usize>, StorageType, Vec<u8>)> = Vec::new();
    let mut matrix = |name: String, rows: usize, columns: usize| {
        let blocks = if columns.is_multiple_of(storage.block_len()) { &blocks } else { &small };
        (name, vec![rows, columns], blocks.storage, blocks.matrix(rows, columns, &mut random))
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

    let mut writer = GgufWriter::new();
    writer.set("general.architecture", &GgufValue::Text("llama".to_owned()));
    writer.set("llama.attention.layer_norm_rms_epsilon", &GgufValue::F32(1e-5));
    for (key, number) in [
        ("context_length", 4096),
        ("embedding_length", 256),
        ("block_count", 2),
        ("feed_forward_length", 64),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 16),
        ("attention.value_length", 16),
        ("rope.dimension_count", 16),
    ] {
        writer.set(&format!("llama.{key}"), &GgufValue::U32(number));
    }
    for (name, shape, storage, _) in &tensors {
        writer.tensor(name, shape, *storage).expect("rows are whole blocks");
    }
    let data = |index: usize| Ok::<_, CheckpointError>(tensors[index].3.clone());
    writer.bytes(data).expect("the tensors are in memory")
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
