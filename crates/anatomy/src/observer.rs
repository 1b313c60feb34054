use std::ops::Range;

use glassbox_tensor::{View, ViewMut};

use crate::At;

/// What an observer wants of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Not to be called.
    Nothing,
    /// To see the value.
    See,
    /// To see only these rows, given as absolute positions; the rest need not be computed.
    Rows(Range<usize>),
    /// To change the value before the pass goes on. The run is then stamped as edited.
    Edit,
}

/// What `attn.stats` is to hold beyond what is always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks<'a> {
    /// Spans of absolute key positions, whose shares of the attention are wanted.
    pub spans: &'a [Range<usize>],
    /// How many of the keys with the largest weights are wanted.
    pub top_keys: usize,
    /// Whether sums of the weights times the norm of what the head makes of the value, `‖W_O v‖`, are wanted: over all keys, each span and each top key.
    pub value_weighted: bool,
    /// The token whose logit is to be divided among keys: sums of the weights times the value's product with the token's direction are wanted. Each is a
    /// part of the logit, before a final soft-cap, times the root mean square (where norms centre: the standard deviation) of what the last norm reads
    /// in that row, and of what a norm on attention's output reads there.
    pub logit: Option<u32>,
}

/// Keys that some queries are kept from seeing: the edit of attention knockout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hides {
    /// Absolute positions of the queries.
    pub queries: Range<usize>,
    /// Absolute positions of the keys.
    pub keys: Range<usize>,
}

/// Somebody who watches a forward pass.
///
/// An observer cannot fail the pass: it keeps its trouble and gives it up when it is finished.
pub trait Observer {
    /// Asked before a value is made ready; the default wants nothing.
    fn interest(&self, at: At) -> Interest {
        let _ = at;
        Interest::Nothing
    }

    /// What it wants at `attn.stats` beyond what is always there; the default wants nothing.
    fn asks(&self) -> Asks<'_> {
        Asks::default()
    }

    /// What it hides in a layer; the default hides nothing. The kernel is the same, so what is not touched keeps its bits. The run is then stamped as
    /// edited.
    fn hides(&self, layer: usize) -> Option<Hides> {
        let _ = layer;
        None
    }

    /// Shown a value that it wanted to see.
    fn see(&mut self, at: At, value: View<'_>) {
        let _ = (at, value);
    }

    /// Given a value that it wanted to edit.
    fn edit(&mut self, at: At, value: ViewMut<'_>) {
        let _ = (at, value);
    }

    /// False only for [`Off`]: lets the compiler drop every tap.
    #[inline(always)]
    fn is_on(&self) -> bool {
        true
    }
}

/// Nobody watches. The forward pass with `Off` is the forward pass without taps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off;

impl Observer for Off {
    #[inline(always)]
    fn is_on(&self) -> bool {
        false
    }
}
