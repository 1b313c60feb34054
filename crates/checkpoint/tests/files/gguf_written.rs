//! What the GGUF writer writes, read again.

use std::fs;

use glassbox_checkpoint::{Checkpoint, CheckpointError, GgufValue, GgufWriter};
use glassbox_tensor::StorageType;

use crate::write::{f32s, refused};

fn writer() -> GgufWriter {
    let mut writer = GgufWriter::new();
    writer.set("u32", &GgufValue::U32(7));
    writer.set("f32", &GgufValue::F32(0.5));
    writer.set("bool", &GgufValue::Bool(true));
    writer.set("text", &GgufValue::Text("中".to_owned()));
    writer.set("texts", &GgufValue::Texts(vec!["a".to_owned(), String::new()]));
    writer.set("i32s", &GgufValue::I32s(vec![-1, 2]));
    writer.set("f32s", &GgufValue::F32s(vec![0.25, -1.0]));
    writer.tensor("a", &[3], StorageType::F32).expect("fits");
    writer.tensor("b", &[2, 32], StorageType::Q8_0).expect("fits");
    writer.tensor("c", &[1, 2, 4], StorageType::F16).expect("fits");
    writer
}

fn data(index: usize) -> Result<Vec<u8>, CheckpointError> {
    Ok([f32s(&[1.0, 2.0, 3.0]), vec![0; 68], vec![0; 16]][index].clone())
}

#[test]
fn a_written_file_reads_back_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    writer().write(&path, data, |_| Ok(())).expect("written");
    assert_eq!(fs::metadata(&path).expect("there").len(), writer().file_bytes());
    let checkpoint = Checkpoint::open(&path).expect("a valid file");
    let settings = checkpoint.settings();
    assert_eq!(settings.usize("u32").expect("a number"), 7);
    assert_eq!(settings.f64("f32").expect("a number"), 0.5);
    assert!(settings.bool("bool").expect("a truth value"));
    assert_eq!(settings.str("text").expect("a text"), "中");
    assert_eq!(settings.optional_str_list("texts").expect("texts"), Some(vec!["a".to_owned(), String::new()]));
    assert_eq!(settings.optional_f64_list("i32s").expect("numbers"), Some(vec![-1.0, 2.0]));
    assert_eq!(settings.optional_f64_list("f32s").expect("numbers"), Some(vec![0.25, -1.0]));
    assert_eq!(checkpoint.require_tensor("a").and_then(|tensor| tensor.values()).expect("there"), [1.0, 2.0, 3.0]);
    assert_eq!(checkpoint.shape("b"), Some(&[2, 32][..]));
    assert_eq!(checkpoint.shape("c"), Some(&[1, 2, 4][..]));
}

#[test]
fn the_file_in_memory_is_the_one_on_disk() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    writer().write(&path, data, |_| Ok(())).expect("written");
    assert_eq!(writer().bytes(data).expect("in memory"), fs::read(path).expect("read"));
}

#[test]
fn a_second_writer_of_the_same_file_is_turned_away_and_the_first_ends_well() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    let second = |_: &std::path::Path| {
        refused(writer().write(&path, data, |_| Ok(())), "io", &["m.gguf", "another process is writing the same file"]);
        Ok(())
    };
    writer().write(&path, data, second).expect("the first is not disturbed");
    assert_eq!(writer().bytes(data).expect("in memory"), fs::read(&path).expect("read"));
    fs::write(folder.path().join("m.gguf.unfinished"), "left by a killed writer").expect("written");
    writer().write(&path, data, |_| Ok(())).expect("nobody holds it");
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
}

#[test]
fn pairs_of_a_file_are_written_as_they_were() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first, second) = (folder.path().join("1.gguf"), folder.path().join("2.gguf"));
    writer().write(&first, data, |_| Ok(())).expect("written");
    let checkpoint = Checkpoint::open(&first).expect("a valid file");
    let mut again = GgufWriter::new();
    checkpoint.gguf_pairs().for_each(|(_, pair)| again.set_pair(pair));
    for (name, storage) in [("a", StorageType::F32), ("b", StorageType::Q8_0), ("c", StorageType::F16)] {
        again.tensor(name, checkpoint.shape(name).expect("there"), storage).expect("fits");
    }
    again.write(&second, data, |_| Ok(())).expect("written");
    assert_eq!(fs::read(first).expect("read"), fs::read(second).expect("read"));
}

#[test]
fn a_writing_that_fails_leaves_what_was_there_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    fs::write(&path, "before").expect("written");
    let full = || CheckpointError::Io { file: path.clone(), doing: "make it", source: std::io::ErrorKind::StorageFull.into() };
    assert!(writer().write(&path, |_| Err(full()), |_| Ok(())).is_err());
    assert!(writer().write(&path, data, |_| Err(full())).is_err(), "a file that does not stand its check");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("listed").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["m.gguf"]);
    assert_eq!(fs::read_to_string(&path).expect("read"), "before");
    refused(writer().write(&folder.path().join("no/m.gguf"), data, |_| Ok(())), "io", &["no/m.gguf", "make it"]);
    assert!(writer().tensor("d", &[33], StorageType::Q8_0).is_err(), "half a block");
}
