//! Files as they are, as they should be, and as they must not be: every test builds its own, byte by byte.

mod cache;
mod folders;
mod gguf_files;
mod gguf_malformed;
mod gguf_parts;
mod gguf_written;
mod locate;
mod mutations;
mod safetensors_malformed;
mod settings;
mod tokenizer_sources;
mod write;
