//! The tiny models of `fixtures/tiny`: every family, in the order in which the first byte of an input counts them.

/// A macro, because the files are part of the program.
macro_rules! tiny {
    ($($name:literal),* $(,)?) => {
        [$(include_bytes!(concat!("../../fixtures/tiny/", $name, "/model.safetensors"))),*]
    };
}

macro_rules! tiny_gguf {
    ($($name:literal),* $(,)?) => {
        [$((
            include_bytes!(concat!("../seeds/metadata/", $name)),
            include_bytes!(concat!("../../fixtures/tiny/", $name, "/model.gguf")),
        )),*]
    };
}

/// Weights that a `config.json` meets.
#[rustfmt::skip]
pub(crate) static CONFIGS: [&[u8]; 32] = tiny![
    "gemma3-mqa", "gpt2", "llama-gqa", "llama-scaled", "qwen2-gqa", "qwen2-window", "bert", "bert-relu", "bloom", "gemma-mha", "gemma-mqa",
    "gemma2-gqa", "gemma2-mha", "gemma3-gqa", "gpt_neox-parallel", "gpt_neox-serial", "llama-biased", "llama-dynamic", "llama-mha",
    "llama-mqa", "minimal", "mistral-gqa", "mistral-whole", "mpt", "mpt-clip", "olmo2-gqa", "olmo2-mha", "phi3-long", "phi3-short",
    "qwen2-yarn", "qwen3-gqa", "qwen3-window",
];

/// The seed (one byte, then metadata and tensor table) and the whole file, which goes on with the padding and the tensor data.
#[rustfmt::skip]
pub(crate) static GGUF_FILES: [(&[u8], &[u8]); 16] = tiny_gguf![
    "bert", "bloom", "gemma-mqa", "gemma2-gqa", "gemma3-mqa", "gpt2", "gpt_neox-parallel", "llama-biased", "llama-gqa", "llama-scaled",
    "mpt", "olmo2-gqa", "phi3-long", "qwen2-gqa", "qwen2-yarn", "qwen3-gqa",
];
