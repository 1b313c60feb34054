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

/// Somebody who watches a forward pass.
///
/// An observer cannot fail the pass: it keeps its trouble and gives it up when it is finished.
pub trait Observer {
    /// Asked before a value is made ready; the default wants nothing.
    fn interest(&self, at: At) -> Interest {
        let _ = at;
        Interest::Nothing
    }

    /// Spans of absolute key positions whose shares of the attention it wants at `attn.stats`; the default wants none.
    fn spans(&self) -> &[Range<usize>] {
        &[]
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
