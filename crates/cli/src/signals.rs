//! Ctrl-C: the first asks the command to finish its step and keep what it has, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::terminal;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to listen. Where the system does not allow it, Ctrl-C ends the process as usual, and the record stays resumable.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        terminal::remark("interrupted: finishing the current step; press Ctrl-C again to stop at once");
    });
}

/// The flag that a long work looks at between two steps.
pub(crate) fn interrupted() -> &'static AtomicBool {
    &INTERRUPTED
}
