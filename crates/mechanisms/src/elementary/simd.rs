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

/// Makes a public function that runs a portable, `#[inline(always)]` definition compiled for AVX2 where the machine has it, and as it
/// stands elsewhere.
macro_rules! vector_twin {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $definition:path) => {
        $(#[$doc])*
        $vis fn $name($($arg: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $type),*) $(-> $result)? {
                $definition($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::elementary::avx2_fma() {
                #[expect(unsafe_code, reason = "calling a function compiled for AVX2")]
                // SAFETY: the features it was compiled for were found on this machine in the line above.
                return unsafe { avx2($($arg),*) };
            }
            $definition($($arg),*)
        }
    };
}
pub(crate) use vector_twin;

#[inline(always)]
fn exp_each(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = exp(*value));
}

#[inline(always)]
fn tanh_each(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = tanh(*value));
}

#[inline(always)]
fn erf_each(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = erf(*value));
}

vector_twin! {
    /// Replaces every value by its exponential: [`exp`], the same bits.
    pub fn exp_in_place(values: &mut [f32]) = exp_each
}
vector_twin! {
    /// Replaces every value by its hyperbolic tangent: [`tanh`], the same bits.
    pub fn tanh_in_place(values: &mut [f32]) = tanh_each
}
vector_twin! {
    /// Replaces every value by its error function: [`erf`], the same bits.
    pub fn erf_in_place(values: &mut [f32]) = erf_each
}
