//! Files on disk as named tensors, configuration and tokenizer files: safetensors and GGUF.
