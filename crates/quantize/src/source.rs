//! Where tensors and metadata come from: a GGUF file as it is, or a folder translated.

use glassbox_checkpoint::{Checkpoint, CheckpointKind, TokenizerSource};
use glassbox_model::GgufModel;
use glassbox_tensor::Matrix;
use glassbox_text::{GgufVocabulary, TextSource, gguf_vocabulary};

use crate::QuantizeError;

/// A model ready to be written.
pub(crate) struct Source<'a> {
    pub(crate) tensors: Vec<SourceTensor>,
    pub(crate) kind: SourceKind<'a>,
}

pub(crate) enum SourceKind<'a> {
    /// A GGUF file, whose metadata stay as they are.
    Gguf(&'a Checkpoint),
    /// A folder, translated; without a vocabulary where it has no tokenizer.
    Folder(Box<GgufModel>, Option<Box<GgufVocabulary>>),
}

pub(crate) struct SourceTensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) matrix: Matrix,
}

impl<'a> Source<'a> {
    pub(crate) fn of(checkpoint: &'a Checkpoint) -> Result<Self, QuantizeError> {
        if checkpoint.kind() == CheckpointKind::Gguf {
            let tensor = |name: &str| {
                let stored = checkpoint.require_tensor(name)?;
                Ok(SourceTensor { name: name.to_owned(), matrix: stored.matrix()?, shape: stored.shape })
            };
            let tensors = checkpoint.tensor_names().map(tensor).collect::<Result<_, QuantizeError>>()?;
            return Ok(Self { tensors, kind: SourceKind::Gguf(checkpoint) });
        }
        let mut model = GgufModel::of(checkpoint)?;
        let rows = model.vocab();
        let vocabulary = match checkpoint.tokenizer_source()? {
            source @ (TokenizerSource::Json(_) | TokenizerSource::Words(_)) => match TextSource::try_from(&source)? {
                TextSource::Json(files) => Some(Box::new(gguf_vocabulary(&files, rows)?)),
                TextSource::Gguf(_) => None,
            },
            _ => None,
        };
        let tensors = std::mem::take(&mut model.tensors);
        let tensors =
            tensors.into_iter().map(|tensor| SourceTensor { name: tensor.name, shape: tensor.shape, matrix: tensor.matrix }).collect();
        Ok(Self { tensors, kind: SourceKind::Folder(Box::new(model), vocabulary) })
    }

    pub(crate) fn has_tokenizer(&self) -> bool {
        match &self.kind {
            SourceKind::Gguf(checkpoint) => checkpoint.gguf_pairs().any(|(key, _)| key == "tokenizer.ggml.tokens"),
            SourceKind::Folder(_, vocabulary) => vocabulary.is_some(),
        }
    }

    /// What llama.cpp computes otherwise; of a GGUF file nothing is known.
    pub(crate) fn otherwise_in_llama_cpp(&self) -> &[String] {
        match &self.kind {
            SourceKind::Gguf(_) => &[],
            SourceKind::Folder(model, _) => &model.otherwise_in_llama_cpp,
        }
    }

    /// Whether the written file is the model that was read.
    pub(crate) fn check(&self, written: &Checkpoint) -> Result<(), QuantizeError> {
        if let Some(lost) = self.tensors.iter().find(|tensor| written.shape(&tensor.name) != Some(&tensor.shape)) {
            return Err(QuantizeError::Lost { tensor: lost.name.clone() });
        }
        match &self.kind {
            SourceKind::Gguf(_) => Ok(()),
            SourceKind::Folder(model, _) => Ok(model.check(written)?),
        }
    }
}
