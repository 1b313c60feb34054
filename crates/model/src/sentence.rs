//! One vector of a text: how an encoder's vectors, one a token, become one.

use glassbox_checkpoint::Checkpoint;

use crate::{Encoded, Encoder, ModelError, families};

/// How the vectors of a text's tokens become one, as the files of the model say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentenceRecipe {
    /// Each gives `d_model` numbers; several stand one after another.
    pub poolings: Vec<Pooling>,
    /// Whether the result is divided by its length.
    pub unit_length: bool,
    /// Longest text in tokens, special tokens among them; a longer one loses its end.
    pub most_tokens: usize,
    /// Whether capitals are made small before anything else.
    pub lower_case: bool,
    /// What stands before every text; mostly nothing.
    pub prompt: String,
    /// Whether the files say all this, or nothing, so that it is what sentence-transformers does with a model that it does not know.
    pub declared: bool,
}

/// One vector of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// That of the first token.
    First,
    /// In each channel the largest of all tokens.
    Largest,
    /// The mean over all tokens, special ones among them.
    Mean,
    /// The sum over all tokens, divided by the square root of their number.
    SumByRoot,
    /// That of the last token.
    Last,
}

impl Pooling {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::First, Self::Largest, Self::Mean, Self::SumByRoot, Self::Last];

    /// Its name in the files of sentence-transformers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "cls",
            Self::Largest => "max",
            Self::Mean => "mean",
            Self::SumByRoot => "mean_sqrt_len_tokens",
            Self::Last => "lasttoken",
        }
    }

    /// [d_model] of `vectors` [token, d_model], of which there is at least one.
    fn of(self, vectors: &[f32], d_model: usize) -> Vec<f64> {
        let rows = || vectors.chunks_exact(d_model).map(|row| row.iter().map(|x| f64::from(*x)));
        let sum = || {
            let mut sum = vec![0.0; d_model];
            for row in rows() {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            sum
        };
        let tokens = (vectors.len() / d_model) as f64;
        match self {
            Self::First => rows().next().map(Iterator::collect).unwrap_or_default(),
            Self::Last => rows().next_back().map(Iterator::collect).unwrap_or_default(),
            Self::Mean => sum().into_iter().map(|x| x / tokens).collect(),
            Self::SumByRoot => sum().into_iter().map(|x| x / tokens.sqrt()).collect(),
            Self::Largest => {
                let mut largest = vec![f64::NEG_INFINITY; d_model];
                for row in rows() {
                    for (most, x) in largest.iter_mut().zip(row) {
                        // A number that is none stays, so that it is seen.
                        if x > *most || x.is_nan() {
                            *most = x;
                        }
                    }
                }
                largest
            }
        }
    }
}

impl SentenceRecipe {
    /// What the files of an encoder say: `modules.json` and the files that it names, or the metadata of a GGUF file.
    ///
    /// Where a folder says nothing, it is the mean of all tokens, not divided by its length. A GGUF file never says whether the length is
    /// divided by; programs that read them do so.
    ///
    /// # Errors
    ///
    /// Where a file is damaged, or asks for a step that is not done here, such as a matrix after the pooling.
    pub fn of(checkpoint: &Checkpoint, encoder: &Encoder) -> Result<Self, ModelError> {
        families::sentence::read(checkpoint, encoder.blueprint())
    }

    /// One vector [poolings × d_model] of the vectors of a text's tokens, summed in double precision in the order of the tokens.
    #[must_use]
    pub fn vector(&self, encoded: &Encoded, d_model: usize) -> Vec<f32> {
        let pooled: Vec<f64> = self.poolings.iter().flat_map(|pooling| pooling.of(&encoded.vectors, d_model)).collect();
        let length = if self.unit_length { pooled.iter().map(|x| x * x).sum::<f64>().sqrt().max(SHORTEST) } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "the result is wanted in single precision")]
        pooled.into_iter().map(|x| (x / length) as f32).collect()
    }
}

/// A vector of nothing but zeros has no direction; it is divided by this, as by `torch.nn.functional.normalize`.
const SHORTEST: f64 = 1e-12;

/// The cosine of the angle between two vectors of the same size, in double precision; 0 where one of them has no direction.
#[must_use]
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths == 0.0 { 0.0 } else { dot(one, other) / lengths }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(poolings: &[Pooling], unit_length: bool) -> Vec<f32> {
        let recipe = SentenceRecipe {
            poolings: poolings.to_vec(),
            unit_length,
            most_tokens: 8,
            lower_case: false,
            prompt: String::new(),
            declared: true,
        };
        recipe.vector(&Encoded { vectors: vec![1.0, -8.0, 2.0, 2.0, 3.0, 0.0, 6.0, -6.0], pooled: None }, 2)
    }

    #[test]
    fn each_pooling_is_what_its_name_says() {
        for (pooling, wanted) in [
            (Pooling::First, [1.0, -8.0]),
            (Pooling::Last, [6.0, -6.0]),
            (Pooling::Largest, [6.0, 2.0]),
            (Pooling::Mean, [3.0, -3.0]),
            (Pooling::SumByRoot, [6.0, -6.0]),
        ] {
            assert_eq!(vector(&[pooling], false), wanted, "{pooling:?}");
        }
        assert_eq!(vector(&[Pooling::Mean, Pooling::First], false), [3.0, -3.0, 1.0, -8.0]);
    }

    #[test]
    fn a_vector_of_unit_length_keeps_its_direction() {
        let half_root = std::f32::consts::FRAC_1_SQRT_2;
        assert_eq!(vector(&[Pooling::Mean], true), [half_root, -half_root]);
        assert_eq!(cosine(&[3.0, -3.0], &[half_root, -half_root]), 1.0);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 2.0]), 0.0);
        assert_eq!(cosine(&[0.0, 0.0], &[0.0, 2.0]), 0.0);
    }

    #[test]
    fn a_number_that_is_none_stays_visible_in_every_pooling() {
        for pooling in Pooling::ALL {
            let recipe = SentenceRecipe {
                poolings: vec![pooling],
                unit_length: true,
                most_tokens: 8,
                lower_case: false,
                prompt: String::new(),
                declared: true,
            };
            let mut vectors = vec![1.0; 6];
            vectors[match pooling {
                Pooling::First => 0,
                Pooling::Last => 4,
                _ => 2,
            }] = f32::NAN;
            assert!(recipe.vector(&Encoded { vectors, pooled: None }, 2).iter().any(|x| x.is_nan()), "{pooling:?}");
        }
    }
}
