//! What the encoders write: gguf-py's own bits where there is one right answer, and an error no larger than ggml's where there is none.

use glassbox_tensor::{Bytes, Matrix, StorageType, TensorError, encode};

/// 1024 numbers, then gguf-py's bytes; 4096 numbers, then ggml's bytes; made by `fixtures/make_encoded.py`.
fn fixture() -> Fixture {
    let mut rest: &[u8] = include_bytes!("fixtures/encoded.bin");
    let mut take = |len: usize| {
        let (taken, after) = rest.split_at(len);
        rest = after;
        taken
    };
    let floats = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let plain = floats(take(4096));
    let exact = [StorageType::F16, StorageType::Q8_0, StorageType::Q5_0, StorageType::Q4_0]
        .map(|storage| (storage, take(storage.bytes_for(1024).expect("whole blocks")).to_vec()));
    let rows = floats(take(4 * 4096));
    let searched = [StorageType::Q4K, StorageType::Q6K].map(|storage| (storage, take(16 * storage.block_bytes()).to_vec()));
    assert!(rest.is_empty(), "the fixture holds nothing else");
    Fixture { plain, exact, rows, searched }
}

struct Fixture {
    plain: Vec<f32>,
    exact: [(StorageType, Vec<u8>); 4],
    rows: Vec<f32>,
    searched: [(StorageType, Vec<u8>); 2],
}

fn decoded(storage: StorageType, bytes: Vec<u8>) -> Vec<f32> {
    let columns = bytes.len() / storage.block_bytes() * storage.block_len();
    let row = Matrix::new(1, columns, storage, Bytes::new(bytes)).expect("whole blocks");
    let mut out = vec![f32::NAN; columns];
    row.decode_row(0, &mut out);
    out
}

fn squared_error(values: &[f32], storage: StorageType, bytes: Vec<u8>) -> f64 {
    values.iter().zip(decoded(storage, bytes)).map(|(value, found)| f64::from(value - found).powi(2)).sum()
}

#[test]
fn types_with_one_right_encoding_get_the_bits_of_gguf_py() {
    let fixture = fixture();
    for (storage, wanted) in fixture.exact {
        assert_eq!(encode(storage, &fixture.plain).expect("whole blocks"), wanted, "{storage}");
    }
}

#[test]
fn types_that_are_searched_err_less_than_ggml() {
    let fixture = fixture();
    for (storage, by_ggml) in &fixture.searched {
        let (mut ours, mut theirs) = (0.0, 0.0);
        for (row, (values, by_ggml)) in fixture.rows.chunks(256).zip(by_ggml.chunks(storage.block_bytes())).enumerate() {
            let (our, their) = (
                squared_error(values, *storage, encode(*storage, values).expect("one block")),
                squared_error(values, *storage, by_ggml.to_vec()),
            );
            // both searches end in a local minimum, so one may win a row by a hair: 0.5 % of the square is 0.25 % of the error
            assert!(our <= their * 1.005, "{storage}, row {row}: {our} against {their}");
            (ours, theirs) = (ours + our, theirs + their);
        }
        assert!(ours < 0.98 * theirs, "{storage}: {ours} against {theirs}");
    }
}

#[test]
fn numbers_that_a_type_holds_come_back_as_they_were() {
    for storage in
        [StorageType::F32, StorageType::F16, StorageType::Q8_0, StorageType::Q5_0, StorageType::Q4_0, StorageType::Q4K, StorageType::Q6K]
    {
        let zeros = vec![0.0; 256];
        assert_eq!(decoded(storage, encode(storage, &zeros).expect("whole blocks")), zeros, "{storage}");
        // -8 to 7 in steps of a half are codes of every type from five bits on, of four bits in whole steps
        let codes = if storage.block_len() == 1 || storage == StorageType::Q8_0 { 127 } else { 8 };
        let whole: Vec<f32> = (0..256).map(|i| (i * 7 % (2 * codes) - codes) as f32).collect();
        let found = decoded(storage, encode(storage, &whole).expect("whole blocks"));
        // a step of Q8_0 is 127/127 where the block holds ±127, and rounded to f16 everywhere: half a step at most
        let most = whole.iter().zip(&found).map(|(value, found)| (value - found).abs()).fold(0.0, f32::max);
        assert!(most <= 0.51, "{storage}: {most}");
    }
}

#[test]
fn a_constant_of_either_sign_keeps_its_sign_and_size() {
    for storage in [StorageType::Q8_0, StorageType::Q5_0, StorageType::Q4_0, StorageType::Q4K, StorageType::Q6K] {
        for value in [0.25_f32, -0.25, 3e-3, -3e-3] {
            let found = decoded(storage, encode(storage, &[value; 256]).expect("whole blocks"));
            // f16 scales err by 2^-11, six-bit codes of one scale not at all
            assert!(found.iter().all(|found| (found / value - 1.0).abs() < 1.0 / 64.0), "{storage}, {value}: {}", found[0]);
        }
    }
}

#[test]
fn what_is_no_number_does_not_stop_the_encoders() {
    for storage in [StorageType::Q8_0, StorageType::Q5_0, StorageType::Q4_0, StorageType::Q4K, StorageType::Q6K] {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45] {
            let mut values = [0.5; 256];
            values[7] = odd;
            assert_eq!(encode(storage, &values).expect("whole blocks").len(), storage.bytes_for(256).expect("whole blocks"));
        }
    }
}

#[test]
fn half_a_block_and_types_without_an_encoder_are_refused() {
    assert!(matches!(encode(StorageType::Q8_0, &[0.0; 33]), Err(TensorError::PartialBlock { columns: 33, .. })));
    let error = encode(StorageType::Q2K, &[0.0; 256]).expect_err("nothing writes it").to_string();
    assert!(error.contains("Q2_K") && error.contains("Q4_K"), "{error}");
}
