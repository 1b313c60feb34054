//! The door of a matrix: sizes are checked once, and never trusted.

use glassbox_tensor::{Bytes, Matrix, StorageType, TensorError, View};

#[test]
fn a_row_is_whole_blocks() {
    let error = Matrix::new(1, 40, StorageType::Q8_0, Bytes::new(vec![0; 68])).expect_err("40 is no multiple of 32");
    assert!(matches!(error, TensorError::PartialBlock { columns: 40, storage: StorageType::Q8_0 }));
    assert_eq!(error.to_string(), "a row of 40 numbers cannot be stored as Q8_0, whose blocks hold 32");
}

#[test]
fn bytes_are_exactly_those_of_the_rows() {
    for found in [0, 67, 69] {
        let error = Matrix::new(2, 32, StorageType::Q8_0, Bytes::new(vec![0; found])).expect_err("2 rows are 68 bytes");
        assert!(matches!(error, TensorError::WrongByteCount { wanted: 68, .. }), "{error}");
    }
}

#[test]
fn claimed_sizes_that_overflow_are_refused() {
    for (rows, columns) in [(usize::MAX, 32), (32, usize::MAX / 2 / 32 * 32), (usize::MAX, usize::MAX / 32 * 32)] {
        assert!(Matrix::new(rows, columns, StorageType::Q8_0, Bytes::new(vec![0; 34])).is_err());
    }
}

#[test]
fn sliced_rows_share_the_memory_and_decode_the_same() {
    let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let matrix = Matrix::from_f32(4, 3, &values).expect("sizes fit");
    let middle = matrix.slice_rows(1..3).expect("rows 1 and 2 exist");
    let mut row = [0.0; 3];
    middle.decode_row(1, &mut row);
    assert_eq!(row, [6.0, 7.0, 8.0]);
    assert_eq!(middle.row_bytes(0).as_ptr(), matrix.row_bytes(1).as_ptr());
    assert!(matrix.slice_rows(3..5).is_none());
}

#[test]
fn a_view_names_its_axes_or_is_refused() {
    let values = [0.0; 6];
    let view = View::new(&["token", "d_model"], &[2, 3], &values).expect("2 x 3 = 6");
    assert_eq!(view.sizes_of(["token", "d_model"]).expect("these are its axes"), [2, 3]);
    assert!(view.sizes_of(["d_model", "token"]).is_err());
    assert!(View::new(&["token"], &[2, 3], &values).is_err());
    assert!(View::new(&["token"], &[usize::MAX], &values).is_err());
    assert!(View::new(&["a", "b"], &[usize::MAX, 2], &values).is_err());
}
