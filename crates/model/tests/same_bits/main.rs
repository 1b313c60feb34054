//! Contract 1: for one model file, one storage type of keys and values and one kernel set, every row of logits has the same bits, whatever the
//! threads, pieces, company, cache, process, and whether somebody watches.
//!
//! Every fixture of `fixtures/tiny` takes part by being there. Not the full product: each way is held against one reference for every family
//! and weight format with one storage type of the cache, and most ways with the others (`Checker::all`, `Checker::brief`). Encoders read a text at
//! once: for them threads, watching and processes are left. `make test-real` holds a real model to all ways (`tests/real.rs`), and kernels planted
//! inside the forward pass show that the checker notices them (`src/planted`).

mod checker;
mod families;
mod formats;
mod planted;

use std::collections::BTreeSet;
use std::fmt::Write;

use checker::{Checker, Everything, in_another_process, prompt};
use glassbox_mechanisms::cache::{Cache, KvType, Pool};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Activations, Encoded, Encoder, Keeping, Model, Rows, Windows};
use glassbox_tensor::StorageType;

#[test]
fn every_family_has_the_same_bits_whatever_the_way() {
    let mut seen = BTreeSet::new();
    for (name, model) in &families::all(Kernels::Fast) {
        // The first fixture of a family goes through every storage type, and through every way with one; the others take turns.
        let first = seen.insert(model.blueprint().family);
        let every_way = KvType::ALL[seen.len() % 3];
        for kv_type in KvType::ALL {
            let found = match kv_type == every_way {
                true if first => Checker::new(model, kv_type).all(),
                true => Checker::new(model, kv_type).brief(),
                false if first => Checker::new(model, kv_type).brief(),
                false => Ok(()),
            };
            found.unwrap_or_else(|difference| panic!("{name}: {difference}"));
        }
    }
}

#[test]
fn every_weight_format_has_the_same_bits_whatever_the_way() {
    for (index, storage) in StorageType::ALL.into_iter().enumerate() {
        let model = formats::model_of(storage, Kernels::Fast);
        for kv_type in KvType::ALL {
            let checker = Checker::new(&model, kv_type);
            let found = if kv_type == KvType::ALL[index % 3] { checker.all() } else { checker.brief() };
            found.unwrap_or_else(|difference| panic!("{storage}: {difference}"));
        }
    }
}

/// Types whose weights meet rounded activations.
const IN_PANELS: [StorageType; 8] = [
    StorageType::Q4_0,
    StorageType::Q4_1,
    StorageType::Q5_0,
    StorageType::Q5_1,
    StorageType::Q8_0,
    StorageType::Q4K,
    StorageType::Q5K,
    StorageType::Q6K,
];

#[test]
fn rounded_activations_have_the_same_bits_whatever_the_way() {
    for (index, storage) in IN_PANELS.into_iter().enumerate() {
        let model = formats::model_with(storage, Kernels::Fast, Activations::Rounded);
        for kv_type in KvType::ALL {
            let checker = Checker::new(&model, kv_type);
            let found = if kv_type == KvType::ALL[index % 3] { checker.all() } else { checker.brief() };
            found.unwrap_or_else(|difference| panic!("{storage}: {difference}"));
        }
        let portable = formats::model_with(storage, Kernels::Portable, Activations::Rounded);
        assert!(logits(&model, KvType::F16) == logits(&portable, KvType::F16), "{storage}: vector and portable kernels");
        let exact = formats::model_of(storage, Kernels::Fast);
        assert!(logits(&model, KvType::F16) != logits(&exact, KvType::F16), "{storage}: activations are rounded");
    }
}

/// Every row of a pass over 200 tokens.
fn logits(model: &Model, kv_type: KvType) -> Vec<u32> {
    let ids: Vec<u32> = (0..200).map(|position| position * 7 % 40).collect();
    let plan = model.cache_plan(ids.len(), Keeping { kv_type, windows: Windows::Ring });
    let mut cache = Cache::planned(&plan, &Pool::new(1 << 28)).expect("tiny");
    let logits = model.forward(&ids, &mut cache, Rows::All, &Workers::new(2)).expect("sound ids");
    logits.iter().map(|logit| logit.to_bits()).collect()
}

#[test]
fn vector_and_portable_kernels_have_the_same_bits() {
    for ((name, vector), (_, portable)) in families::all(Kernels::Fast).iter().zip(&families::all(Kernels::Portable)) {
        let kv_type = KvType::ALL[name.len() % 3];
        assert!(logits(vector, kv_type) == logits(portable, kv_type), "{name}");
    }
    for storage in StorageType::ALL {
        let [vector, portable] = [Kernels::Fast, Kernels::Portable].map(|kernels| formats::model_of(storage, kernels));
        assert!(logits(&vector, KvType::Q8_0) == logits(&portable, KvType::Q8_0), "{storage}");
    }
}

/// The bits that x86-64 with and without AVX2 and AArch64 have in common: taken on the first, held to on the last by `make test-aarch64`.
/// Whoever changes them on purpose (the order of a sum, an elementary function) writes the new number here; a machine that differs has
/// found a fault.
#[test]
fn every_machine_has_the_same_bits() {
    let fingerprint = |model: &Model, kv_type| {
        let fold = |hash: u64, bits: &u32| (hash ^ u64::from(*bits)).wrapping_mul(0x0000_0100_0000_01b3);
        format!("{:016x}", logits(model, kv_type).iter().fold(0xcbf2_9ce4_8422_2325, fold))
    };
    let formats = [(StorageType::F32, KvType::F32), (StorageType::Q4K, KvType::Q8_0), (StorageType::Q6K, KvType::F16)]
        .map(|(storage, kv_type)| fingerprint(&formats::model_of(storage, Kernels::Fast), kv_type));
    assert_eq!(formats, ["ebb519ebfc3b6365", "ab8dd162a539f3d0", "2ab3b583e750f234"]);
    let rounded = [StorageType::Q5_0, StorageType::Q5K, StorageType::Q6K]
        .map(|storage| fingerprint(&formats::model_with(storage, Kernels::Fast, Activations::Rounded), KvType::F32));
    assert_eq!(rounded, ["bdb1ec44ebf6ecfa", "66551e9e3fe7dde3", "a547c0b1751b6ae1"]);
    let families = families::all(Kernels::Fast);
    for (name, wanted) in [
        ("bloom", "2c2fa0aab3379a34"),
        ("gemma2-gqa", "e65c61b207e165a3"),
        ("gemma3-gqa", "8ce027d51c4f9339"),
        ("gpt2", "a019a33420b8849c"),
        ("gpt_neox-parallel", "fddd0f0fcb775b15"),
        ("llama-scaled", "badef564897bce25"),
        ("minimal", "4af4b526c1a3b545"),
        ("olmo2-gqa", "73343f3962e500b0"),
        ("phi3-long", "d7dff64856152ca4"),
        ("qwen2-yarn", "bca5a6ab9cda2eae"),
    ] {
        let (_, model) = families.iter().find(|(found, _)| found == name).expect("it is among the fixtures");
        assert_eq!(fingerprint(model, KvType::F32), wanted, "{name}");
    }
}

#[test]
fn storage_types_of_the_cache_have_other_bits_than_one_another() {
    let model = formats::model_of(StorageType::F32, Kernels::Fast);
    let [a, b, c] = KvType::ALL.map(|kv_type| Checker::new(&model, kv_type).wanted);
    assert!(a != b && b != c && a != c, "what is checked depends on the storage type");
}

#[test]
fn two_processes_have_the_same_bits() {
    // Twice in one process is what `Checker::all` does.
    let mut seen = BTreeSet::new();
    let families = families::all(Kernels::Fast).into_iter().filter(|(_, model)| seen.insert(model.blueprint().family));
    let formats = StorageType::ALL.into_iter().map(|storage| (storage, Activations::Exact));
    let formats = formats.chain(IN_PANELS.into_iter().map(|storage| (storage, Activations::Rounded)));
    let formats = formats.map(|(storage, activations)| (storage.to_string(), formats::model_with(storage, Kernels::Fast, activations)));
    let mut here = String::new();
    for (index, (name, model)) in families.chain(formats).enumerate() {
        writeln!(here, "{name} {:x?}", Checker::new(&model, KvType::ALL[index % 3]).wanted).expect("a string has room");
    }
    for (name, encoder) in families::encoders(Kernels::Fast) {
        writeln!(here, "{name} {:x?}", bits(&encode(&encoder, 1))).expect("a string has room");
    }
    if let Some(there) = in_another_process("two_processes_have_the_same_bits", &here) {
        assert!(here == there, "{:?}", here.lines().zip(there.lines()).find(|(here, there)| here != there));
    }
}

/// Vectors and pooled vector of a long text of two sentences.
fn encode(encoder: &Encoder, threads: usize) -> Encoded {
    let ids = prompt(encoder.blueprint().vocab);
    encoder.encode(&ids, Some(&sentences(&ids)), &Workers::new(threads)).expect("sound ids")
}

/// The first 400 tokens are the first sentence.
fn sentences(ids: &[u32]) -> Vec<u32> {
    (0..ids.len()).map(|token| u32::from(token >= 400)).collect()
}

#[test]
fn every_encoder_has_the_same_bits_on_any_threads_watched_and_in_portable_code() {
    for ((name, encoder), (_, portable)) in families::encoders(Kernels::Fast).iter().zip(&families::encoders(Kernels::Portable)) {
        let wanted = bits(&encode(encoder, 1));
        for threads in [1, 2, 3, 8] {
            assert!(bits(&encode(encoder, threads)) == wanted, "{name} on {threads} threads");
        }
        let ids = prompt(encoder.blueprint().vocab);
        let watched = encoder.encode_observed(&ids, Some(&sentences(&ids)), &Workers::new(2), &mut Everything).expect("sound ids");
        assert!(bits(&watched) == wanted, "{name} watched");
        assert!(bits(&encode(portable, 2)) == wanted, "{name} in portable code");
    }
}

fn bits(encoded: &Encoded) -> Vec<u32> {
    let pooled = encoded.pooled.iter().flatten();
    encoded.vectors.iter().chain(pooled).map(|x| x.to_bits()).collect()
}
