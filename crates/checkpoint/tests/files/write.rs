//! Small writers of valid and of broken files, independent of the readers under test.

use glassbox_checkpoint::{Checkpoint, CheckpointError};
use glassbox_tensor::Bytes;

/// A metadata value as GGUF writes it: type number and bytes.
pub(crate) fn kv(key: &str, type_number: u32, value: &[u8]) -> Vec<u8> {
    [text(key).as_slice(), &type_number.to_le_bytes(), value].concat()
}

pub(crate) fn kv_text(key: &str, value: &str) -> Vec<u8> {
    kv(key, 8, &text(value))
}

pub(crate) fn kv_u32(key: &str, value: u32) -> Vec<u8> {
    kv(key, 4, &value.to_le_bytes())
}

pub(crate) fn kv_f32(key: &str, value: f32) -> Vec<u8> {
    kv(key, 6, &value.to_le_bytes())
}

pub(crate) fn kv_bool(key: &str, value: bool) -> Vec<u8> {
    kv(key, 7, &[u8::from(value)])
}

pub(crate) fn kv_texts(key: &str, values: &[&str]) -> Vec<u8> {
    let values: Vec<Vec<u8>> = values.iter().map(|value| text(value)).collect();
    kv(key, 9, &array(8, values.len() as u64, &values.concat()))
}

/// An array's element type, length and elements.
pub(crate) fn array(element: u32, len: u64, elements: &[u8]) -> Vec<u8> {
    [&element.to_le_bytes()[..], &len.to_le_bytes(), elements].concat()
}

/// A string with its length before it.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A tensor info; `dimensions` as GGUF writes them, the contiguous axis first.
pub(crate) fn info(name: &str, dimensions: &[u64], type_number: u32, offset: u64) -> Vec<u8> {
    let sizes: Vec<u8> = dimensions.iter().flat_map(|size| size.to_le_bytes()).collect();
    let count = u32::try_from(dimensions.len()).expect("few dimensions");
    [text(name).as_slice(), &count.to_le_bytes(), &sizes, &type_number.to_le_bytes(), &offset.to_le_bytes()].concat()
}

pub(crate) fn gguf_header(version: u32, tensors: u64, keys: u64) -> Vec<u8> {
    [b"GGUF".as_slice(), &version.to_le_bytes(), &tensors.to_le_bytes(), &keys.to_le_bytes()].concat()
}

/// A whole GGUF file of version 3: header, keys, infos, padding to `alignment`, data.
pub(crate) fn gguf(keys: &[Vec<u8>], infos: &[Vec<u8>], alignment: usize, data: &[u8]) -> Vec<u8> {
    let mut file = gguf_header(3, infos.len() as u64, keys.len() as u64);
    file.extend(keys.concat());
    file.extend(infos.concat());
    file.resize(file.len().next_multiple_of(alignment), 0);
    file.extend(data);
    file
}

/// A whole safetensors file from its header and data.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn open_gguf(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(bytes.to_vec()))
}

/// A folder in memory with these files.
pub(crate) fn open_folder(files: &[(&str, &[u8])]) -> Result<Checkpoint, CheckpointError> {
    let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), Bytes::new(bytes.to_vec()))).collect();
    Checkpoint::from_parts("folder", files)
}

/// A folder in memory with this configuration and no weights to speak of.
pub(crate) fn open_config(config: &str) -> Result<Checkpoint, CheckpointError> {
    open_folder(&[("config.json", config.as_bytes()), ("model.safetensors", &safetensors("{}", b""))])
}

/// Asserts that `result` is an error of this kind whose message holds all of `parts`.
pub(crate) fn refused<T>(result: Result<T, CheckpointError>, kind: &str, parts: &[&str]) {
    let Err(error) = result else { panic!("accepted; expected {kind}: {parts:?}") };
    let message = error.to_string();
    assert_eq!(error.kind(), kind, "{message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}
