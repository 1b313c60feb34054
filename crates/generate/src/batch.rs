use glassbox_mechanisms::Workers;
use glassbox_model::{Model, ModelError, Rows};

use crate::Session;

/// Most tokens of a pass, over all sequences: those that decode are never kept waiting by a long prompt for more than one pass of this size.
const PASS_TOKENS: usize = 512;

/// Several sequences read together, without padding: in every pass all rows go through each matrix side by side. Sequences join and leave
/// between passes, whenever they like.
///
/// By the contract of equal bits the logits of each are those that it would have alone.
#[derive(Debug, Default)]
pub struct Batch {
    seats: Vec<Option<Seated>>,
}

/// The place of a sequence in a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seat(usize);

#[derive(Debug)]
struct Seated {
    session: Session,
    /// Tokens not read yet.
    waiting: Vec<u32>,
}

impl Batch {
    /// A batch without sequences.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a sequence that is to hold exactly `prompt`; what `session` holds of its beginning is not computed again. Give forks to share
    /// a prefix, and sessions of one pool to share memory.
    ///
    /// # Errors
    ///
    /// Where the prompt is empty, holds an unknown id, or has no room now; the session is given up.
    pub fn admit(&mut self, model: &Model, mut session: Session, prompt: &[u32]) -> Result<Seat, ModelError> {
        session.keep_shared(prompt);
        let waiting = prompt[session.ids().len()..].to_vec();
        session.check(model, &waiting)?;
        let free = self.seats.iter().position(Option::is_none).unwrap_or(self.seats.len());
        self.seats.resize_with(self.seats.len().max(free + 1), || None);
        self.seats[free] = Some(Seated { session, waiting });
        Ok(Seat(free))
    }

    /// Appends a token to a sequence, to be read by the next pass. Nothing happens where the seat is empty.
    ///
    /// # Errors
    ///
    /// Where the id is unknown or there is no room; the sequence stays as it was.
    pub fn push(&mut self, model: &Model, seat: Seat, id: u32) -> Result<(), ModelError> {
        let Some(Some(seated)) = self.seats.get_mut(seat.0) else { return Ok(()) };
        seated.waiting.push(id);
        let checked = seated.session.check(model, &seated.waiting);
        if checked.is_err() {
            seated.waiting.pop();
        }
        checked
    }

    /// Reads up to 512 waiting tokens in one pass, single ones first. Gives the logits [vocab] of each sequence that has now been read
    /// to its end; where nothing waits, none.
    ///
    /// # Errors
    ///
    /// Where the sequences together want more memory than their pool has. Nothing was read then: let one leave, and try again.
    pub fn pass(&mut self, model: &Model, workers: &Workers) -> Result<Vec<(Seat, Vec<f32>)>, ModelError> {
        let mut order: Vec<(usize, &mut Seated)> =
            self.seats.iter_mut().enumerate().filter_map(|(seat, seated)| Some((seat, seated.as_mut()?))).collect();
        order.retain(|(_, seated)| !seated.waiting.is_empty());
        order.sort_by_key(|(_, seated)| seated.waiting.len() > 1);
        let mut left = PASS_TOKENS;
        let mut read = Vec::new();
        for (_, seated) in &order {
            let tokens = seated.waiting.len().min(left);
            read.push(tokens);
            left -= tokens;
        }
        order.truncate(read.iter().take_while(|tokens| **tokens > 0).count());
        let sequences = order.iter_mut().zip(&read).map(|((_, seated), &tokens)| {
            let rows = if tokens == seated.waiting.len() { Rows::Last } else { Rows::None };
            seated.session.sequence(&seated.waiting[..tokens], rows)
        });
        let logits = model.forward_together(&mut sequences.collect::<Vec<_>>(), workers);
        let mut finished = Vec::new();
        match logits {
            Ok(logits) => {
                for (((seat, seated), tokens), logits) in order.into_iter().zip(read).zip(logits) {
                    let read: Vec<u32> = seated.waiting.drain(..tokens).collect();
                    seated.session.passed(&read);
                    if seated.waiting.is_empty() {
                        finished.push((Seat(seat), logits));
                    }
                }
                finished.sort_by_key(|(seat, _)| *seat);
                Ok(finished)
            }
            Err(error) => {
                for (_, Seated { session, waiting }) in order {
                    // A ring that could not go back is empty now, and its tokens are to be read again.
                    let held = session.ids().to_vec();
                    session.passed(&[]);
                    waiting.splice(0..0, held[session.ids().len()..].iter().copied());
                }
                Err(error)
            }
        }
    }

    /// Takes a sequence out. Tokens that no pass has read are not in the session.
    pub fn leave(&mut self, seat: Seat) -> Option<Session> {
        self.seats.get_mut(seat.0)?.take().map(|seated| seated.session)
    }

    /// Sequences in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seats.iter().flatten().count()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
