use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

use super::*;

#[test]
fn looking_up_a_row_equals_the_one_hot_product_bit_for_bit() {
    let mut values = Values::seeded(1);
    let table = Matrix::from_f32(11, 6, &values.normals(66, 1.0)).expect("sizes fit");
    let ids = [0, 10, 3, 3];
    let mut found = [f32::NAN; 24];
    look_up(&table.clone().into(), &ids, 1.0, &mut found);
    let wanted = textbook::look_up::<f32>(&table, &ids, 1.0);
    assert!(found.iter().zip(&wanted).all(|(found, wanted)| found.to_bits() == wanted.to_bits()));
    let shifted = textbook::look_up::<f32>(&table, &[1, 9, 4, 4], 1.0); // planted: the rows beside
    assert!(found.iter().zip(&shifted).all(|(found, wanted)| found.to_bits() != wanted.to_bits()));
}

#[test]
fn a_scale_multiplies_every_number_once() {
    let bytes = (0..34).map(|i| i as u8).collect::<Vec<_>>();
    let table = Matrix::new(1, 32, StorageType::Q8_0, Bytes::new(bytes)).expect("one block");
    let (mut plain, mut scaled) = ([0.0; 32], [0.0; 32]);
    look_up(&table.clone().into(), &[0], 1.0, &mut plain);
    look_up(&table.clone().into(), &[0], 55.5, &mut scaled);
    assert!(plain.iter().zip(&scaled).all(|(plain, scaled)| (plain * 55.5).to_bits() == scaled.to_bits()));
    assert!(plain.iter().any(|value| *value != 0.0));
}

#[test]
#[should_panic(expected = "token id 4 is outside the vocabulary of 4")]
fn an_id_outside_the_vocabulary_is_no_row() {
    let table = Matrix::from_f32(4, 2, &[0.0; 8]).expect("sizes fit");
    look_up(&table.clone().into(), &[4], 1.0, &mut [0.0; 2]);
}

#[test]
fn every_storage_type_looks_up_what_its_matrix_decodes() {
    let mut values = Values::seeded(2);
    for storage in StorageType::ALL {
        let bytes = values.bytes(3 * storage.bytes_for(256).expect("whole blocks of every type"));
        let table = Matrix::new(3, 256, storage, Bytes::new(bytes)).expect("sizes fit");
        let (mut found, mut wanted) = (vec![0.0; 512], vec![0.0; 256]);
        look_up(&table.clone().into(), &[2, 0], 1.0, &mut found);
        for (row, found) in [2, 0].into_iter().zip(found.chunks(256)) {
            table.decode_row(row, &mut wanted);
            assert!(found.iter().zip(&wanted).all(|(found, wanted)| found.to_bits() == wanted.to_bits()), "{storage}, row {row}");
        }
    }
}

#[test]
fn no_tokens_have_no_embeddings() {
    let table = Matrix::from_f32(4, 2, &[0.0; 8]).expect("sizes fit");
    look_up(&table.clone().into(), &[], 1.0, &mut []);
}
