use thiserror::Error;

/// What a mechanism refuses, each with the numbers that made it refuse.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MechanismError {
    /// Query heads that cannot share the key-value heads evenly, or a size of zero.
    #[error(
        "{heads} query heads cannot share {kv_heads} key-value heads of d_head={d_head}: wanted positive sizes and a whole number of query heads for each key-value head"
    )]
    Heads {
        /// Query heads.
        heads: usize,
        /// Key-value heads.
        kv_heads: usize,
        /// Width of a head.
        d_head: usize,
    },
    /// A rotary width that is odd, zero, or wider than the head.
    #[error("rotary positions turn pairs of channels: wanted an even width between 2 and d_head={d_head}, found {width}")]
    RotaryWidth {
        /// Width of a head.
        d_head: usize,
        /// Width asked for.
        width: usize,
    },
    /// A rotary setting that gives no usable angle.
    #[error("rotary setting `{name}` is {value}: wanted {wanted}")]
    RotarySetting {
        /// Name of the setting.
        name: &'static str,
        /// Value found.
        value: f64,
        /// What would be right.
        wanted: &'static str,
    },
    /// A setting of positions that are not rotary.
    #[error("position setting `{name}` is {value}: wanted {wanted}")]
    PositionSetting {
        /// Name of the setting.
        name: &'static str,
        /// Value found.
        value: f64,
        /// What would be right.
        wanted: &'static str,
    },
    /// A position beyond a learned table.
    #[error("positions {first}..{end} were asked of a learned table of {rows} positions: shorten the text")]
    PositionOutOfTable {
        /// First position asked for.
        first: usize,
        /// One after the last position asked for.
        end: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// A cache that would be larger than the caller allows.
    #[error("a cache for {capacity} tokens takes {wanted} bytes, and {limit} are allowed: ask for fewer tokens or allow more memory")]
    CacheTooLarge {
        /// Tokens it should hold.
        capacity: usize,
        /// Bytes it would take; `u64::MAX` when the number does not fit.
        wanted: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// No room for more tokens.
    #[error("the cache is full: it holds {len} of {capacity} tokens, and {more} more were to be added; make it larger or shorten the text")]
    CacheFull {
        /// Tokens held.
        len: usize,
        /// Tokens it may hold.
        capacity: usize,
        /// Tokens that were to be added.
        more: usize,
    },
    /// No memory left in the pool that several caches share.
    #[error(
        "{wanted} more bytes of cache are needed, and {taken} of the {limit} allowed are taken: end other sequences or allow more memory"
    )]
    PoolFull {
        /// Bytes needed.
        wanted: u64,
        /// Bytes that all caches of the pool take.
        taken: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Keys that a ring no longer holds.
    #[error(
        "layer {layer} keeps only the keys of its window: position {wanted} is needed, and those before {held} are gone; compute the tokens again from the first, or keep windows whole"
    )]
    LetGo {
        /// The layer.
        layer: usize,
        /// First position needed.
        wanted: usize,
        /// First position held.
        held: usize,
    },
    /// A query that sees keys which a ring no longer holds.
    #[error(
        "a query sees the key at position {wanted}, and the cache holds none before {held}: the window of the cache is narrower than that of the mask"
    )]
    NotHeld {
        /// First position that the query sees.
        wanted: usize,
        /// First position held.
        held: usize,
    },
    /// The system gave no memory.
    #[error("the system gave no memory for {bytes} bytes of cache: ask for fewer tokens")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The system gave no memory for weights in panels.
    #[error(
        "the system gave no memory for {bytes} bytes of weights: free some, or take the weights where they lie in the file (exact activations)"
    )]
    NoWeightMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// Values whose number does not fit their axes.
    #[error("`{name}` should hold {wanted} numbers ({axes}), found {found}")]
    WrongLength {
        /// What the values are.
        name: &'static str,
        /// Their axes.
        axes: &'static str,
        /// Numbers wanted.
        wanted: usize,
        /// Numbers found.
        found: usize,
    },
    /// A layer that the cache does not have, or one not yet appended.
    #[error("the cache has {layers} layers: there is no layer {layer}")]
    NoSuchLayer {
        /// Layer asked for.
        layer: usize,
        /// Layers there are.
        layers: usize,
    },
    /// A token was to be counted in although some layer has no key and value for it.
    #[error("layer {layer} holds keys for {found} tokens, {wanted} were to be counted in: append to every layer before advancing")]
    LayerBehind {
        /// The layer.
        layer: usize,
        /// Tokens it should hold.
        wanted: usize,
        /// Tokens it holds.
        found: usize,
    },
}
