//! What a file claims costs no memory. Alone in its own process, because it watches the process.

use glassbox_checkpoint::Checkpoint;
use glassbox_tensor::Bytes;

/// The most address space that this process has reserved at any time, in bytes: counts what is allocated and never touched too.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).expect("a line of the status");
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_claim_exabytes_are_refused_within_a_mebibyte() {
    let huge = [u64::MAX, 1 << 62, 1 << 48, 1 << 40, 1 << 33, 1 << 31];
    let number = |at: usize, value: u64, mut file: Vec<u8>| {
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        file
    };
    // header | key `k`, an array of strings | tensor `t` of one dimension
    let mut gguf = [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &1_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    gguf.extend([&1_u64.to_le_bytes()[..], b"k", &9_u32.to_le_bytes(), &8_u32.to_le_bytes(), &0_u64.to_le_bytes()].concat());
    gguf.extend([&1_u64.to_le_bytes()[..], b"t", &1_u32.to_le_bytes(), &8_u64.to_le_bytes(), &[0; 12]].concat());
    gguf.resize(4096, 0);
    let safetensors = b"\x3E\0\0\0\0\0\0\0{\"k\":{\"dtype\":\"F32\",\"shape\":[0000000001],\"data_offsets\":[0,4]}}\0\0\0\0";
    let open = |gguf: &[u8]| Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(gguf.to_vec())).map(|_| ());
    open(&gguf).expect("valid before it is changed");
    assert!(Checkpoint::from_embedded("folder", &[("config.json", b"{}"), ("model.safetensors", safetensors)]).is_err());
    let reported = ["g2", "g3", "g4", "g5", "g7", "g8", "g9", "g10", "g12"].map(|name| {
        std::fs::read(format!("{}/../../fixtures/malformed/{name}.gguf", env!("CARGO_MANIFEST_DIR"))).expect("the fixture is committed")
    });
    let before = peak();
    for file in &reported {
        assert!(open(file).is_err());
    }
    for value in huge {
        for at in [8, 16, 24, 41, 49, 62] {
            assert!(open(&number(at, value, gguf.clone())).is_err(), "{value} at byte {at}");
        }
        let lying = number(0, value, safetensors.to_vec());
        let files = vec![("config.json".to_owned(), Bytes::new(b"{}".to_vec())), ("model.safetensors".to_owned(), Bytes::new(lying))];
        assert!(Checkpoint::from_parts("folder", files).is_err());
    }
    let grown = peak() - before;
    assert!(grown < 1 << 20, "grew by {grown} bytes");
}
