//! On what is measured, and how much memory the process takes.

use std::fs;
use std::num::NonZeroUsize;

use serde::Serialize;

/// The machine, as far as it says what it is.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Name of the processor, or of the architecture where the system names none.
    pub processor: String,
    /// Processors that the system gives to this process.
    pub processors: usize,
    /// Vector instructions that a kernel may find.
    pub features: Vec<&'static str>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and architecture.
    pub system: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        let processor = line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        Self {
            processor,
            processors: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            features: features(),
            memory_bytes: line_of("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text)),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// Lets the peak of resident memory begin anew. Where the system does not allow it, the peak stays that of the whole process.
pub(crate) fn reset_peak() {
    // `5` resets the high-water mark (proc_pid_clear_refs). A refusal leaves an upper bound, which is still true.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Peak of resident memory, in bytes; nothing where the system does not say.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    kibibytes(&line_of("/proc/self/status", "VmHWM")?)
}

/// Resident memory now, in bytes; nothing where the system does not say.
pub(crate) fn resident_bytes() -> Option<u64> {
    kibibytes(&line_of("/proc/self/status", "VmRSS")?)
}

/// What stands after `key` and a colon.
fn line_of(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Bytes of a text such as `1234 kB`, which in `/proc` means 1024 bytes each.
fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let known = [
        ("avx2", std::is_x86_feature_detected!("avx2")),
        ("fma", std::is_x86_feature_detected!("fma")),
        ("f16c", std::is_x86_feature_detected!("f16c")),
        ("avx512f", std::is_x86_feature_detected!("avx512f")),
        ("avx512vnni", std::is_x86_feature_detected!("avx512vnni")),
    ];
    known.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kibibytes_become_bytes_and_other_units_nothing() {
        assert_eq!(kibibytes("12 kB"), Some(12_288));
        assert_eq!(kibibytes("12 MB"), None);
        assert_eq!(kibibytes("x kB"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_sees_what_was_touched() {
        let before = peak_resident_bytes().expect("Linux says");
        let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(peak_resident_bytes().is_some_and(|after| after + (1 << 20) >= before.max(touched.len() as u64)));
        assert!(!Machine::here().processor.is_empty());
    }
}
