//! The questions whose answers define a decoder, or an encoder.
//!
//! Nothing here has a default: a new question does not compile until every family answers it. What a file says in its own words
//! (keys, tensor names, layouts) stays in `families`.

use glassbox_mechanisms::cache::LayerShape;
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;
use glassbox_mechanisms::position::Scaling;

/// Everything that the forward pass needs to know besides the weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Blueprint {
    /// Name of the family that was recognised, for messages; the forward pass never looks at it.
    pub family: &'static str,
    /// Number of token ids.
    pub vocab: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Tokens that the model says it was made for. Only a table of learned positions ends there.
    pub context: usize,
    /// What a token's vector is multiplied with as it is looked up; 1 for most families.
    pub embedding_scale: f32,
    /// Whether a vector is added to each token by the kind of its sentence.
    pub token_types: TokenTypes,
    /// Whether a vector is added to each token by its position.
    pub added_positions: AddedPositions,
    /// Whether a token's vector is normalised before the first block.
    pub embedding_norm: EmbeddingNorm,
    /// How vectors are normalised.
    pub norm: Norm,
    /// Where in a block they are.
    pub norm_places: NormPlaces,
    /// What the feed-forward reads.
    pub residual: Residual,
    /// What the attention of all layers has in common.
    pub attention: Attention,
    /// The other half of a block.
    pub feed_forward: FeedForward,
    /// What differs from layer to layer; its length is the number of layers.
    pub layers: Vec<Layer>,
    /// How the last vector becomes logits.
    pub unembedding: Unembedding,
    /// Whether one vector stands for the whole text.
    pub pooler: Pooler,
}

impl Blueprint {
    /// What a cache keeps of each token, layer by layer.
    #[must_use]
    pub fn cache_layers(&self) -> Vec<LayerShape> {
        let heads = self.attention.heads;
        vec![LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() }; self.layers.len()]
    }

    /// Whether the angles of a sequence depend on the capacity of its cache. Where they do, two passes over the same tokens give the same
    /// bits only with caches of the same capacity.
    #[must_use]
    pub fn depends_on_capacity(&self) -> bool {
        let asks = |layer: &Layer| match &layer.rotation {
            Rotation::None => false,
            Rotation::Rotary { scaling, .. } => matches!(scaling, Scaling::DynamicNtk { .. } | Scaling::LongRope { .. }),
        };
        self.layers.iter().any(asks)
    }
}

/// Whether a vector is added to each token by the kind of its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenTypes {
    /// No.
    None,
    /// One row for each of `types`.
    Table {
        /// Number of rows.
        types: usize,
    },
}

/// Whether a vector is added to each token by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedPositions {
    /// No: positions enter by rotation, or by distance.
    None,
    /// Sinusoids, computed for any position (Vaswani et al. 2017, arXiv:1706.03762, section 3.5).
    Sinusoidal,
    /// One row for each of `positions`; the model cannot read past them.
    Learned {
        /// Number of rows.
        positions: usize,
    },
}

/// Whether a token's vector is normalised before the first block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingNorm {
    /// No.
    None,
    /// By a norm of the same kind as in the blocks.
    AsInBlocks,
}

/// How vectors are normalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    /// Mean subtracted, divided by the standard deviation; gain and bias.
    Layer {
        /// Added to the variance.
        eps: f32,
    },
    /// As `Layer`, with a gain only.
    LayerWithoutBias {
        /// Added to the variance.
        eps: f32,
    },
    /// Divided by the root mean square; gain only.
    Rms {
        /// Added to the mean square.
        eps: f32,
    },
}

/// Where the norms of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlaces {
    /// Before attention and before the feed-forward.
    Before,
    /// Before each of the two, and again on what it adds to the residual stream.
    BeforeAndAfter,
    /// Only on what each of the two adds; they read the residual stream as it is.
    After,
    /// On the residual stream itself, after each of the two has added to it; there is no other norm, and none at the end.
    OnStream,
}

/// What the feed-forward reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The stream with what attention has added.
    OneAfterAnother,
    /// The stream as attention read it, so that the two do not see one another.
    SideBySide,
}

/// What the attention of all layers has in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Query heads, the kv heads they share, and the width of each.
    pub heads: Heads,
    /// What dot products of queries and keys are multiplied with; usually 1 / √d_head.
    pub scale: f32,
    /// Bound on the scores.
    pub soft_cap: SoftCap,
    /// What a score loses with the distance of its key.
    pub distance: Distance,
    /// Which projections have a bias.
    pub bias: AttentionBias,
    /// Bound on what queries, keys and values are before anything else happens to them.
    pub clamp: Clamp,
    /// Whether queries and keys are normalised before they are rotated.
    pub query_key_norm: QueryKeyNorm,
    /// Which way a query sees.
    pub direction: Direction,
}

/// Which way a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Back to earlier tokens, and its own.
    Backward,
    /// To every token of the text, which is therefore read as a whole.
    Both,
}

/// What a score loses with the distance of its key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distance {
    /// Nothing.
    Free,
    /// ALiBi: a slope for each head, times the positions between query and key.
    Alibi {
        /// The slopes end at `2^-max_bias`.
        max_bias: f64,
    },
}

/// A hard bound: what is beyond it, in either direction, becomes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clamp {
    /// None.
    None,
    /// The largest absolute value.
    At(f32),
}

/// Which projections of the attention have a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionBias {
    /// None.
    None,
    /// Queries, keys and values, but not the output.
    QueryKeyValue,
    /// All four.
    All,
}

/// Whether queries and keys are normalised before they are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKeyNorm {
    /// No.
    None,
    /// Each head's vector by the root mean square over d_head, with one gain for all heads.
    EachHead,
    /// All heads together by the root mean square over the whole projection.
    AllHeads,
}

/// A smooth bound: `x` becomes `cap · tanh(x / cap)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SoftCap {
    /// None.
    None,
    /// Nothing passes this value, in either direction.
    At(f32),
}

/// The two linear maps of a block, with what is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForward {
    /// `down(act(up(x)))`
    Plain {
        /// Width between the two maps.
        hidden: usize,
        /// The function between them.
        activation: Activation,
        /// Whether the maps have biases.
        bias: Bias,
    },
    /// `down(act(gate(x)) · up(x))`
    Gated {
        /// Width between the maps.
        hidden: usize,
        /// The function on the gate.
        activation: Activation,
        /// Whether the maps have biases.
        bias: Bias,
    },
}

impl FeedForward {
    /// Width of the hidden layer.
    #[must_use]
    pub fn hidden(&self) -> usize {
        match *self {
            Self::Plain { hidden, .. } | Self::Gated { hidden, .. } => hidden,
        }
    }
}

/// Whether a linear map adds a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// No.
    None,
    /// Yes.
    Added,
}

/// What differs from layer to layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// How far back a query sees.
    pub window: Window,
    /// Whether queries and keys are rotated by their position.
    pub rotation: Rotation,
}

/// How far back a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// To the first token.
    Whole,
    /// The last so many tokens, its own among them.
    Last(usize),
}

impl Window {
    /// How many keys a row sees at most; none where it sees all up to itself.
    #[must_use]
    pub const fn keys(self) -> Option<usize> {
        match self {
            Self::Whole => None,
            Self::Last(keys) => Some(keys),
        }
    }
}

/// Whether queries and keys are rotated by their position.
#[derive(Clone, Debug, PartialEq)]
pub enum Rotation {
    /// No.
    None,
    /// Yes, in pairs of halves: pair `i` is channel `i` with `i + width / 2`.
    Rotary {
        /// Channels of a head that turn, from the first; d_head for most families. The others stay as they are.
        width: usize,
        /// Base of the wavelengths.
        theta: f64,
        /// How the wavelengths are stretched.
        scaling: Scaling,
        /// What the angles are divided by after that.
        divisors: Divisors,
    },
}

/// What the angles of a rotation are divided by, where a file lists it instead of a formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Divisors {
    /// Nothing.
    None,
    /// One number a pair.
    EachPair(Vec<f32>),
}

/// How the last vector becomes logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unembedding {
    /// Which matrix.
    pub head: HeadMatrix,
    /// Bound on the logits.
    pub soft_cap: SoftCap,
}

/// Which matrix turns vectors into logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadMatrix {
    /// The embedding table itself.
    TiedToEmbedding,
    /// One of its own.
    Own,
    /// None: the model is an encoder, which gives vectors.
    None,
}

/// Whether one vector stands for the whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooler {
    /// No.
    None,
    /// The first token's, projected and bounded by a hyperbolic tangent.
    FirstToken,
}
