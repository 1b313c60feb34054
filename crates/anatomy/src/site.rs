use std::fmt;

/// Whether a site occurs once a forward pass or once a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Once a forward pass: `embed.out`, `norm.out`, `logits`.
    Pass,
    /// Once in each block: its path is `blocks.{layer}.` and the name.
    Block,
}

macro_rules! sites {
    ($($variant:ident, $scope:ident, $name:literal, [$($axis:literal),+], $meaning:literal;)+) => {
        /// A watchable place of the forward pass. The order of the variants is the order of events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Site { $(#[doc = $meaning] $variant),+ }

        impl Site {
            /// Every site, in the order of the forward pass.
            pub const ALL: &'static [Site] = &[$(Site::$variant),+];

            /// The name without its layer, as in `attn.pattern`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Site::$variant => $name),+ }
            }

            /// Names of its axes, slowest first.
            #[must_use]
            pub const fn axes(self) -> &'static [&'static str] {
                match self { $(Site::$variant => &[$($axis),+]),+ }
            }

            /// What one finds there, in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Site::$variant => $meaning),+ }
            }

            /// Once a pass or once a block.
            #[must_use]
            pub const fn scope(self) -> Scope {
                match self { $(Site::$variant => Scope::$scope),+ }
            }
        }
    };
}

sites! {
    EmbedOut,     Pass,  "embed.out",    ["token", "d_model"],           "Token vectors as they enter the first block: looked up, scaled, with learned positions added where a family has them.";
    BlockIn,      Block, "in",           ["token", "d_model"],           "The residual stream as it enters the block.";
    Norm1,        Block, "norm_1.out",   ["token", "d_model"],           "What attention reads: the residual stream after the block's first norm, or as it is where a family has none there.";
    Query,        Block, "attn.q",       ["token", "head", "d_head"],    "Queries after projection and bias, before any norm and rotation.";
    Key,          Block, "attn.k",       ["token", "kv_head", "d_head"], "Keys after projection and bias, before any norm and rotation.";
    Value,        Block, "attn.v",       ["token", "kv_head", "d_head"], "Values after projection and bias.";
    QueryRotated, Block, "attn.q_rot",   ["token", "head", "d_head"],    "Queries as they meet the keys: normed where the family does so, then rotated.";
    KeyRotated,   Block, "attn.k_rot",   ["token", "kv_head", "d_head"], "Keys as the cache stores them: normed where the family does so, then rotated.";
    Scores,       Block, "attn.scores",  ["head", "query", "key"],       "Dot products after scale and soft-cap; a key that may not be seen has minus infinity.";
    Pattern,      Block, "attn.pattern", ["head", "query", "key"],       "Attention weights. Every row sums to 1; a key that may not be seen has 0.";
    Statistics,   Block, "attn.stats",   ["token", "head", "statistic"], "Where each row of attn.pattern went, without its weights: log-sum-exp, first visible key, number of visible keys, entropy in nats, effective support, mean distance in tokens, share of the first token; shares of the distances 0, 1, 2 to 3, 4 to 7 and so on (16 of them); then what the observer asks for: shares of its spans, top keys and their weights, and sums of the weights times a number of each key (norm of its value; part in a logit).";
    Mixed,        Block, "attn.z",       ["token", "head", "d_head"],    "Values mixed by the weights, head by head, before the output projection.";
    AttnOut,      Block, "attn.out",     ["token", "d_model"],           "What the output projection gives, bias included.";
    AttnAdded,    Block, "attn.added",   ["token", "d_model"],           "What attention adds to the residual stream: attn.out, after its own norm where a family has one.";
    Mid,          Block, "mid",          ["token", "d_model"],           "The residual stream between attention and feed-forward.";
    Norm2,        Block, "norm_2.out",   ["token", "d_model"],           "What the feed-forward reads: the residual stream after the block's second norm, or as it is where a family has none there; the stream before attention where the two are side by side.";
    FfnHidden,    Block, "ffn.hidden",   ["token", "hidden"],            "The hidden layer after activation, and after the gate where there is one.";
    FfnOut,       Block, "ffn.out",      ["token", "d_model"],           "What the down projection gives, bias included.";
    FfnAdded,     Block, "ffn.added",    ["token", "d_model"],           "What the feed-forward adds to the residual stream: ffn.out, after its own norm where a family has one.";
    BlockOut,     Block, "out",          ["token", "d_model"],           "The residual stream as it leaves the block.";
    NormOut,      Pass,  "norm.out",     ["token", "d_model"],           "The residual stream after the last norm; only the rows whose logits were asked for.";
    Logits,       Pass,  "logits",       ["token", "vocab"],             "Scores of the next token, after the final soft-cap where a family has one; only the rows asked for.";
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
