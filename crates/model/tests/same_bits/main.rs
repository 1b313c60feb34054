//! Contract 1: for one model file, one storage type of keys and values and one kernel set, every row of logits has the same bits, whatever the
//! threads, pieces, company, cache, process, and whether somebody watches.
//!
//! Every fixture of `fixtures/tiny` takes part by being there. Not the full product: each way is held against one reference for every family,
//! weight format and storage type of the cache. The full product, on a real model, is `make test-real`.

mod checker;
mod families;
mod formats;
mod planted;

use std::collections::BTreeSet;
use std::process::Command;

use checker::Checker;
use glassbox_mechanisms::Kernels;
use glassbox_mechanisms::cache::KvType;
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

#[test]
fn storage_types_of_the_cache_have_other_bits_than_one_another() {
    let model = formats::model_of(StorageType::F32, Kernels::Fast);
    let [a, b, c] = KvType::ALL.map(|kv_type| Checker::new(&model, kv_type).wanted);
    assert!(a != b && b != c && a != c, "what is checked depends on the storage type");
}

/// Fingerprints of two models, one of many rows: what two processes must have in common.
fn of_this_process() -> String {
    let model = formats::model_of(StorageType::Q4K, Kernels::Fast);
    let quantised = Checker::new(&model, KvType::Q8_0).wanted;
    let plain: Vec<u64> =
        families::all(Kernels::Fast).iter().take(1).flat_map(|(_, model)| Checker::new(model, KvType::F16).wanted).collect();
    format!("{quantised:x?} {plain:x?}")
}

/// Where the other process prints to.
const CHILD: &str = "GLASSBOX_SAME_BITS_CHILD";

#[test]
fn two_passes_and_two_processes_have_the_same_bits() {
    let here = of_this_process();
    if let Some(path) = std::env::var_os(CHILD) {
        std::fs::write(path, here).expect("the parent made the folder");
        return;
    }
    assert_eq!(here, of_this_process(), "twice in one process");
    let path = std::env::temp_dir().join(format!("glassbox-same-bits-{}", std::process::id()));
    let child = Command::new(std::env::current_exe().expect("a running program has a path"))
        .args(["two_passes_and_two_processes_have_the_same_bits", "--exact"])
        .env(CHILD, &path)
        .output()
        .expect("the program starts again");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let there = std::fs::read_to_string(&path).expect("the other process wrote it");
    std::fs::remove_file(&path).expect("it is ours");
    assert_eq!(here, there, "in two processes");
}
