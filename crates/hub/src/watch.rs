use std::thread;
use std::time::Duration;

use crate::error::HubError;

/// Who is told of the progress of a pull, and may interrupt it.
pub trait Watch {
    /// So many bytes more are wanted; those of files that are in the cache already are not among them.
    fn expect(&mut self, _bytes: u64) {}
    /// A file begins, with the bytes of it that an earlier attempt has left.
    fn begin(&mut self, _file: &str, _kept_bytes: u64) {}
    /// So many bytes more have come; negative where some of them had to be thrown away.
    fn advance(&mut self, _bytes: i64) {}
    /// Something that a person should know: a retry, a wait.
    fn remark(&mut self, _text: &str) {}
    /// Whether to stop, keeping what has come. Asked about ten times a second, also while waiting.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Watch for () {}

/// Waits, ready to be interrupted.
pub(crate) fn wait(watch: &dyn Watch, length: Duration) -> Result<(), HubError> {
    const STEP: Duration = Duration::from_millis(100);
    let mut left = length;
    while !watch.interrupted() {
        if left.is_zero() {
            return Ok(());
        }
        let step = left.min(STEP);
        thread::sleep(step);
        left -= step;
    }
    Err(HubError::Interrupted)
}
