//! What a file that is no model turns out to be, told from its first bytes.

/// What the first bytes of a file look like, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recognised {
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
}

const fn is(what: &'static str, remedy: &'static str) -> Option<Recognised> {
    Some(Recognised { what, remedy })
}

/// Recognises the formats that people mistake for models; `None` for anything else.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Recognised> {
    if bytes.is_empty() {
        return is("an empty file", "download it again; an interrupted download or a full disk leaves such files");
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return is(
            "a Git LFS pointer (the text that stands for a large file in Git)",
            "run `git lfs pull` in its folder, or download the file itself",
        );
    }
    if bytes.starts_with(b"GGUF") {
        return is("a GGUF file", "give the path of the .gguf file itself as the model");
    }
    if [b"tjgg", b"lmgg", b"fmgg", b"algg"].into_iter().any(|magic| bytes.starts_with(magic)) {
        return is("a GGML file from before GGUF", "convert the original model to GGUF with a current converter");
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return is("a zip archive (PyTorch's .bin and .pt files are such archives, wheels too)", "convert it to safetensors, or unpack it");
    }
    if bytes.starts_with(b"\x80\x02") || bytes.starts_with(b"\x80\x04") {
        return is("a Python pickle", "convert it to safetensors; pickles are programs and are never opened here");
    }
    if bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"\x28\xb5\x2f\xfd") {
        return is("a compressed file", "decompress it first");
    }
    if bytes.starts_with(b"\x89HDF") {
        return is("an HDF5 file", "convert it to safetensors");
    }
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"<") {
        return is("an HTML or XML page", "download the file itself; a page is saved where a link needs a login or leads to a viewer");
    }
    if looks_like_safetensors(bytes) {
        return is("a safetensors file", "give the folder that holds it together with config.json as the model");
    }
    if text.starts_with(b"{") || text.starts_with(b"[") {
        return is("a JSON text", "download the weights; servers answer in JSON when a file is missing or needs a login");
    }
    None
}

fn looks_like_safetensors(bytes: &[u8]) -> bool {
    let Some((len, header)) = bytes.split_first_chunk::<8>() else { return false };
    u64::from_le_bytes(*len) < 100_000_000 && header.starts_with(b"{")
}
