//! Files as they are, as they should be, and as they must not be: built byte by byte, but for those of `malformed`, which are committed.

mod cache;
mod folders;
mod gguf_files;
mod gguf_malformed;
mod gguf_parts;
mod gguf_written;
mod locate;
mod malformed;
mod mutations;
mod safetensors_malformed;
mod settings;
mod tokenizer_sources;
mod write;
