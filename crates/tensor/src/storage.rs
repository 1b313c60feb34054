use std::fmt;

/// How numbers are stored: plain floats, or blocks of quantised codes with their scales.
///
/// Block layouts are those of GGUF (ggml's `ggml-common.h`); their decoding is defined in `blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StorageType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// 32 codes of 4 bits, one f16 scale.
    Q4_0,
    /// 32 codes of 4 bits, f16 scale and minimum.
    Q4_1,
    /// 32 codes of 5 bits, one f16 scale.
    Q5_0,
    /// 32 codes of 5 bits, f16 scale and minimum.
    Q5_1,
    /// 32 codes of 8 bits, one f16 scale.
    Q8_0,
    /// 256 codes of 4 bits, 8 six-bit scales and minima, f16 super-scales.
    Q4K,
    /// 256 codes of 5 bits, 8 six-bit scales and minima, f16 super-scales.
    Q5K,
    /// 256 codes of 6 bits, 16 eight-bit scales, f16 super-scale.
    Q6K,
    /// 256 codes of 2 bits, 16 four-bit scales and minima, f16 super-scales.
    Q2K,
    /// 256 codes of 3 bits, 16 six-bit scales, f16 super-scale.
    Q3K,
    /// 32 codes of 4 bits that name one of 16 fixed steps, denser near zero; one f16 scale.
    Iq4Nl,
    /// 32 codes of 4 bits that are floats of their own (one sign, two exponent bits, one of fraction); one power of two.
    Mxfp4,
}

impl StorageType {
    /// Every storage type, in the order of the enum.
    pub const ALL: [Self; 15] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Q2K,
        Self::Q3K,
        Self::Iq4Nl,
        Self::Mxfp4,
    ];

    /// Numbers in one block; 1 for plain floats. A row holds whole blocks only.
    #[must_use]
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 | Self::Iq4Nl | Self::Mxfp4 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of one block.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Mxfp4 => 17,
            Self::Q4_0 | Self::Iq4Nl => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Bytes that `len` numbers take, or `None` where `len` is no whole number of blocks or the product overflows.
    #[must_use]
    pub const fn bytes_for(self, len: usize) -> Option<usize> {
        if !len.is_multiple_of(self.block_len()) {
            return None;
        }
        (len / self.block_len()).checked_mul(self.block_bytes())
    }

    /// The name as GGUF tools print it: `F32`, `Q4_K`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
            Self::Q2K => "Q2_K",
            Self::Q3K => "Q3_K",
            Self::Iq4Nl => "IQ4_NL",
            Self::Mxfp4 => "MXFP4",
        }
    }
}

impl fmt::Display for StorageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
