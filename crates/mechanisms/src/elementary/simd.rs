//! The definitions of `single.rs` over slices, compiled for AVX2 where the machine has it.
//!
//! There is no second formula: the same source is compiled with other instructions, and every operation in it is correctly
//! rounded, so the bits cannot differ.

use super::{erf, exp, tanh};

/// Whether this machine has AVX2 and fused multiply-add, which every vector kernel here wants.
#[inline]
#[must_use]
pub fn avx2_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

macro_rules! over_slices {
    ($($(#[$doc:meta])* $name:ident = $definition:ident;)+) => {$(
        $(#[$doc])*
        pub fn $name(values: &mut [f32]) {
            #[inline(always)]
            fn portable(values: &mut [f32]) {
                for value in values {
                    *value = $definition(*value);
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2(values: &mut [f32]) {
                portable(values);
            }

            #[cfg(target_arch = "x86_64")]
            if avx2_fma() {
                #[expect(unsafe_code, reason = "calling a function compiled for AVX2")]
                // SAFETY: the features it was compiled for were found on this machine in the line above.
                unsafe {
                    avx2(values);
                }
                return;
            }
            portable(values);
        }
    )+};
}

over_slices! {
    /// Replaces every value by its exponential: [`exp`], the same bits.
    exp_in_place = exp;
    /// Replaces every value by its hyperbolic tangent: [`tanh`], the same bits.
    tanh_in_place = tanh;
    /// Replaces every value by its error function: [`erf`], the same bits.
    erf_in_place = erf;
}
