use glassbox_tensor::StorageType;

use crate::tensor::StoredAs;

/// How a tensor type lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TensorType {
    pub(super) stored_as: StoredAs,
    /// Numbers in one block.
    pub(super) block_len: usize,
    /// Bytes of one block.
    pub(super) block_bytes: usize,
}

impl TensorType {
    /// The type with this number (`ggml_type` of ggml); `None` for numbers that ggml has never used or has withdrawn.
    pub(super) fn from_number(number: u32) -> Option<Self> {
        let read = |storage: StorageType| {
            Some(Self { stored_as: StoredAs::Read(storage), block_len: storage.block_len(), block_bytes: storage.block_bytes() })
        };
        let known = |name: &'static str, block_len: usize, block_bytes: usize| {
            Some(Self { stored_as: StoredAs::NotRead(name), block_len, block_bytes })
        };
        match number {
            0 => read(StorageType::F32),
            1 => read(StorageType::F16),
            2 => read(StorageType::Q4_0),
            3 => read(StorageType::Q4_1),
            6 => read(StorageType::Q5_0),
            7 => read(StorageType::Q5_1),
            8 => read(StorageType::Q8_0),
            9 => known("Q8_1", 32, 36),
            10 => read(StorageType::Q2K),
            11 => read(StorageType::Q3K),
            12 => read(StorageType::Q4K),
            13 => read(StorageType::Q5K),
            14 => read(StorageType::Q6K),
            15 => known("Q8_K", 256, 292),
            16 => known("IQ2_XXS", 256, 66),
            17 => known("IQ2_XS", 256, 74),
            18 => known("IQ3_XXS", 256, 98),
            19 => known("IQ1_S", 256, 50),
            20 => read(StorageType::Iq4Nl),
            21 => known("IQ3_S", 256, 110),
            22 => known("IQ2_S", 256, 82),
            23 => known("IQ4_XS", 256, 136),
            24 => known("I8", 1, 1),
            25 => known("I16", 1, 2),
            26 => known("I32", 1, 4),
            27 => known("I64", 1, 8),
            28 => known("F64", 1, 8),
            29 => known("IQ1_M", 256, 56),
            30 => read(StorageType::Bf16),
            34 => known("TQ1_0", 256, 54),
            35 => known("TQ2_0", 256, 66),
            39 => read(StorageType::Mxfp4),
            40 => known("NVFP4", 64, 36),
            _ => None,
        }
    }

    /// The number of a type that is read here.
    pub(super) fn number_of(storage: StorageType) -> u32 {
        let is_it = |number: &u32| Self::from_number(*number).is_some_and(|found| found.stored_as == StoredAs::Read(storage));
        (0..=40).find(is_it).expect("every storage type has a number, as a test shows")
    }
}
