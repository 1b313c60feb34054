use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

use super::*;

#[test]
fn looking_up_a_row_equals_the_one_hot_product_bit_for_bit() {
    let mut values = Values::seeded(1);
    let table = Matrix::from_f32(11, 6, &values.normals(66, 1.0)).expect("sizes fit");
    let ids = [0, 10, 3, 3];
    let mut found = [0.0; 24];
    look_up(&table, &ids, 1.0, &mut found);
    let wanted = textbook::look_up::<f32>(&table, &ids, 1.0);
    assert!(found.iter().zip(&wanted).all(|(found, wanted)| found.to_bits() == wanted.to_bits()));
}

#[test]
fn a_scale_multiplies_every_number_once() {
    let bytes = (0..34).map(|i| i as u8).collect::<Vec<_>>();
    let table = Matrix::new(1, 32, StorageType::Q8_0, Bytes::new(bytes)).expect("one block");
    let (mut plain, mut scaled) = ([0.0; 32], [0.0; 32]);
    look_up(&table, &[0], 1.0, &mut plain);
    look_up(&table, &[0], 55.5, &mut scaled);
    assert!(plain.iter().zip(&scaled).all(|(plain, scaled)| (plain * 55.5).to_bits() == scaled.to_bits()));
    assert!(plain.iter().any(|value| *value != 0.0));
}

#[test]
#[should_panic(expected = "token id 4 is outside the vocabulary of 4")]
fn an_id_outside_the_vocabulary_is_no_row() {
    let table = Matrix::from_f32(4, 2, &[0.0; 8]).expect("sizes fit");
    look_up(&table, &[4], 1.0, &mut [0.0; 2]);
}
