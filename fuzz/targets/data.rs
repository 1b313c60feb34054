#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glassbox_fuzz::data(bytes));
