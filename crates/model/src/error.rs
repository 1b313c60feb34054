use glassbox_checkpoint::CheckpointError;
use glassbox_mechanisms::MechanismError;

/// Why a model cannot be built, or a pass not be started. Once a pass has started, it does not fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file or its settings cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A mechanism refuses a size: heads, rotation, or a cache.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// No table reads this family.
    #[error(
        "{file}: no family reads {key} `{found}`; known: {}; take a model of these, or add the family as a table (the handbook's page on olmo2 tells how)",
        known.join(", ")
    )]
    UnknownFamily {
        /// The file that names it.
        file: String,
        /// The key that names it.
        key: &'static str,
        /// Its name.
        found: String,
        /// Names that are known under this key.
        known: Vec<&'static str>,
    },
    /// Settings that leave nothing to compute.
    #[error("{file}: the settings make `{axis}` 0, which no model has; correct them")]
    EmptyAxis {
        /// The file.
        file: String,
        /// Name of the axis.
        axis: &'static str,
    },
    /// A tensor has other sizes than its slot.
    #[error(
        "{file}: tensor `{tensor}` does not fit slot `{slot}`: wanted {wanted}, found {found:?}; use the weights that belong to these settings"
    )]
    TensorShape {
        /// Its name in the file.
        tensor: String,
        /// The slot it was to fill.
        slot: &'static str,
        /// Sizes of the slot with the names of their axes, in the order of the file.
        wanted: String,
        /// Sizes in the file.
        found: Vec<usize>,
        /// The file.
        file: String,
    },
    /// A model that cannot be written as GGUF.
    #[error(
        "{file}: cannot be written as GGUF: wanted a model that its family's GGUF files can describe and other programs run, found {what}"
    )]
    NotWritable {
        /// The file or folder.
        file: String,
        /// What stands against it.
        what: String,
    },
    /// Tensors that no slot takes.
    #[error(
        "{file}: {} of the file's tensors fit no slot of family {family}: {}; refusing, because an unread weight may change the numbers",
        tensors.len(),
        first_few(tensors)
    )]
    UnreadTensors {
        /// The file.
        file: String,
        /// The family that was to read it.
        family: &'static str,
        /// Names in the file.
        tensors: Vec<String>,
    },
    /// The output matrix should be the embedding table, but the file has another one.
    #[error(
        "{file}: the settings tie the output matrix to the embedding, but `{tensor}` differs from it; set `tie_word_embeddings` to false, or remove the tensor"
    )]
    TiedHeadDiffers {
        /// The file.
        file: String,
        /// Name of the output matrix.
        tensor: String,
    },
    /// A pass over no token.
    #[error("a forward pass needs at least one token id; none was given")]
    NoIds,
    /// An id that the embedding table does not have.
    #[error("token id {id} at position {position} is outside the vocabulary of {vocab} ids (0 to {})", vocab.saturating_sub(1))]
    IdOutsideVocab {
        /// The id.
        id: u32,
        /// Its absolute position.
        position: usize,
        /// Number of ids.
        vocab: usize,
    },
    /// Positions that the table of learned positions does not have.
    #[error("{tokens} tokens from position {first} on reach past the {positions} learned positions of this model; shorten the text")]
    PastLearnedPositions {
        /// Position of the first token of the pass.
        first: usize,
        /// Tokens of the pass.
        tokens: usize,
        /// Positions of the table.
        positions: usize,
    },
    /// A prefix that is not read whole from the first position on.
    #[error(
        "a prefix of {prefix} tokens: wanted at most {most}, read in one pass into an empty cache, which holds {held}; clear it, or shorten the prefix"
    )]
    Prefix {
        /// Tokens that are to see one another.
        prefix: usize,
        /// How many could.
        most: usize,
        /// Tokens that the cache holds.
        held: usize,
    },
    /// An encoder where logits are wanted.
    #[error("{file}: a model of family {family} is an encoder, which gives vectors and no logits; it cannot continue a text")]
    NoDecoder {
        /// The family.
        family: &'static str,
        /// The file.
        file: String,
    },
    /// A decoder where vectors are wanted.
    #[error("{file}: a model of family {family} is a decoder, which gives logits; vectors of a text need an encoder such as bert")]
    NoEncoder {
        /// The family.
        family: &'static str,
        /// The file.
        file: String,
    },
    /// Token types that do not fit the tokens or the model.
    #[error("token types: wanted {tokens} numbers below {types}, one for each token, found {given} numbers of which one may be larger")]
    TokenTypes {
        /// Tokens of the text.
        tokens: usize,
        /// Types given.
        given: usize,
        /// Rows of the model's table.
        types: usize,
    },
    /// A logit that cannot be divided among the keys of attention.
    #[error(
        "the logit of token {token} cannot be divided among keys: wanted a token below {vocab} of a decoder whose residual stream no norm changes, found {found}; ask for shares or value-weighted mass instead"
    )]
    NoPathToLogit {
        /// The token.
        token: u32,
        /// Tokens of the vocabulary; 0 for an encoder.
        vocab: usize,
        /// What stands against it.
        found: &'static str,
    },
    /// A cache made for a model of other sizes.
    #[error("the cache was made for another model: it has {found}, this model needs {wanted}; make it with `new_cache`")]
    ForeignCache {
        /// What this model needs.
        wanted: String,
        /// What the cache has.
        found: String,
    },
}

fn first_few(names: &[String]) -> String {
    const FEW: usize = 5;
    let shown = names.iter().take(FEW).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > FEW { format!("{shown} and {} more", names.len() - FEW) } else { shown }
}
