//! The one thread that computes. It owns the batch and the sessions; choices come in by a bounded queue and tell their tokens back, one by one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use glassbox_generate::{Answering, Batch, FinishReason, GenerationError, Seat, Session, Settings};
use glassbox_lens::NextTokens;
use glassbox_mechanisms::cache::Pool;
use glassbox_mechanisms::softmax::log_probability;
use glassbox_model::{Keeping, ModelError};
use tokio::sync::mpsc::UnboundedSender;

use crate::Served;

/// Where no pass ends for so long something is stuck: one of 512 tokens through a model of seven billion weights takes a minute or two on a small machine.
const STUCK: Duration = Duration::from_secs(600);

/// One choice to be made.
pub(crate) struct Job {
    pub(crate) prompt: Arc<[u32]>,
    pub(crate) settings: Settings,
    /// Likeliest tokens beside each chosen one; `None` for no log-probabilities.
    pub(crate) top: Option<usize>,
    /// Which of the choices of its request.
    pub(crate) choice: usize,
    /// Where it is told. A receiver that has gone ends the work; what is sent is at most one message a token.
    pub(crate) teller: UnboundedSender<(usize, Told)>,
}

/// What a choice tells while it is made.
#[derive(Debug)]
pub(crate) enum Told {
    /// A token was chosen.
    Token(Token),
    /// The answer has ended.
    End {
        /// Text that was held back until it was clear that no stop string follows.
        held: String,
        reason: FinishReason,
        answer_tokens: usize,
        /// Tokens of the prompt that were in the cache.
        cached_tokens: usize,
    },
    /// The answer cannot go on.
    Failed(String),
}

/// A chosen token.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) text: String,
    /// Characters of the answer before it.
    pub(crate) start: usize,
    pub(crate) scores: Option<Scores>,
}

/// Natural logarithms of raw probabilities: before penalty, temperature and filters.
#[derive(Debug)]
pub(crate) struct Scores {
    pub(crate) chosen: f64,
    /// The likeliest tokens, best first.
    pub(crate) top: Vec<(u32, f64)>,
}

/// What the engine does at the moment.
pub(crate) struct State {
    queue: Mutex<VecDeque<Job>>,
    /// Told when a job comes, and when the engine is to end.
    called: Condvar,
    active: AtomicUsize,
    stopping: AtomicBool,
    progress: Mutex<Instant>,
    alive: AtomicBool,
}

/// The engine as the rest of the server sees it.
pub(crate) struct Engine {
    pub(crate) state: Arc<State>,
    /// Jobs that may wait.
    most_waiting: usize,
}

impl State {
    fn new() -> Self {
        Self {
            queue: Mutex::default(),
            called: Condvar::new(),
            active: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            progress: Mutex::new(Instant::now()),
            alive: AtomicBool::new(true),
        }
    }

    /// Choices in the queue for which somebody waits.
    pub(crate) fn waiting(&self) -> usize {
        self.waited_for().len()
    }

    /// Choices in the batch.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    /// Asks the engine to end after the pass at hand.
    pub(crate) fn stop(&self) {
        // Under the lock, so that the engine cannot look before and wait after.
        let _queue = self.waited_for();
        self.stopping.store(true, Ordering::SeqCst);
        self.called.notify_all();
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// What is wrong, where something is.
    pub(crate) fn trouble(&self) -> Option<&'static str> {
        let since = self.progress.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        if !self.alive.load(Ordering::SeqCst) {
            return Some("the thread that computes has ended");
        }
        (self.active() > 0 && since > STUCK).then_some("no choice has made progress for ten minutes")
    }

    fn progressed(&self, active: usize) {
        self.active.store(active, Ordering::SeqCst);
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The queue, without the jobs whose askers have gone.
    fn waited_for(&self) -> MutexGuard<'_, VecDeque<Job>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.retain(|job| !job.teller.is_closed());
        queue
    }

    /// The next job; where there is none, waits for one, or for the end.
    fn wait_for_job(&self) -> Option<Job> {
        let mut queue = self.waited_for();
        while queue.is_empty() && !self.stopping() {
            queue = self.called.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.pop_front()
    }
}

impl Engine {
    /// Starts the thread. Up to `slots` choices are made at a time, and up to `waiting` more wait.
    ///
    /// # Errors
    ///
    /// Where `slots` full caches would need more than `pool` has, or the system gives no thread.
    pub(crate) fn start(served: &Arc<Served>, slots: usize, waiting: usize, pool: Pool) -> Result<Self, crate::ServerError> {
        let plan = served.model.cache_plan(served.context, served.keeping);
        // More than can be counted is more than there is.
        let wanted = plan.bytes().unwrap_or(u64::MAX).saturating_mul(slots as u64);
        if wanted > pool.limit() {
            return Err(crate::ServerError::Memory {
                slots,
                context: served.context,
                wanted_mib: wanted.div_ceil(1 << 20),
                limit_mib: pool.limit() >> 20,
            });
        }
        let state = Arc::new(State::new());
        let floor = Floor { served: Arc::clone(served), slots, pool, state: Arc::clone(&state) };
        std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                let _ending = Ending(Arc::clone(&floor.state));
                floor.work();
            })
            .map_err(crate::ServerError::Thread)?;
        Ok(Self { state, most_waiting: waiting })
    }

    /// Puts the choices of a request into the queue: all of them, or none.
    pub(crate) fn admit(&self, jobs: Vec<Job>) -> Result<(), Rejected> {
        let mut queue = self.state.waited_for();
        if self.state.stopping() || !self.state.alive.load(Ordering::SeqCst) {
            return Err(Rejected::Ended);
        }
        if queue.len() + jobs.len() > self.most_waiting {
            return Err(Rejected::Full);
        }
        queue.extend(jobs);
        self.state.called.notify_one();
        Ok(())
    }
}

/// Why choices were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// As many wait as may.
    Full,
    /// The engine has ended.
    Ended,
}

/// Says that the engine has ended, however it did.
struct Ending(Arc<State>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.alive.store(false, Ordering::SeqCst);
        self.0.active.store(0, Ordering::SeqCst);
        // Whoever waits learns by the end of its channel that nothing comes.
        self.0.waited_for().clear();
    }
}

/// Where choices are made.
struct Floor {
    served: Arc<Served>,
    slots: usize,
    pool: Pool,
    state: Arc<State>,
}

/// A choice in the making.
struct Running {
    seat: Seat,
    answering: Answering,
    cached_tokens: usize,
    job: Job,
}

impl Floor {
    fn work(&self) {
        let mut batch = Batch::new();
        let mut running: Vec<Running> = Vec::new();
        // Sessions of choices that have ended, the one that was used longest ago first: a prompt that begins alike goes on from them.
        let mut idle: Vec<Session> = Vec::new();
        while !self.state.stopping() {
            while running.len() < self.slots {
                let job = if running.is_empty() { self.state.wait_for_job() } else { self.state.waited_for().pop_front() };
                let Some(job) = job else { break };
                let fresh = running.len() + idle.len() < self.slots;
                running.extend(self.seat(&mut batch, &mut idle, fresh, job));
                self.state.progressed(running.len());
            }
            // The work of a choice that nobody waits for ends here, at the latest one pass after its asker has gone.
            let (waited_for, left): (Vec<Running>, Vec<Running>) = running.into_iter().partition(|choice| !choice.job.teller.is_closed());
            idle.extend(left.iter().filter_map(|choice| batch.leave(choice.seat)));
            running = waited_for;
            self.state.progressed(running.len());
            if running.is_empty() {
                continue;
            }
            let logits = batch.pass(&self.served.model, &self.served.workers);
            running = match logits {
                Ok(rows) => self.advance(&mut batch, &mut idle, running, &rows),
                Err(error) => {
                    for choice in &running {
                        choice.job.tell(Told::Failed(error.to_string()));
                        idle.extend(batch.leave(choice.seat));
                    }
                    Vec::new()
                }
            };
            self.state.progressed(running.len());
        }
    }

    /// Gives a choice its place: in the session that shares most of its prompt, or, where that is nothing, in a `fresh` one.
    fn seat(&self, batch: &mut Batch, idle: &mut Vec<Session>, fresh: bool, job: Job) -> Option<Running> {
        if job.teller.is_closed() {
            return None;
        }
        let answering = match Answering::new(&self.served.tokenizer, &job.prompt, self.served.context, &job.settings) {
            Ok(answering) => answering,
            Err(error) => {
                job.tell(Told::Failed(error.to_string()));
                return None;
            }
        };
        if let Some(reason) = answering.ended() {
            job.tell(Told::End { held: String::new(), reason, answer_tokens: 0, cached_tokens: 0 });
            return None;
        }
        let admitted = self.session(idle, fresh, &job.prompt).and_then(|mut session| {
            session.keep_shared(&job.prompt);
            let cached_tokens = session.ids().len();
            Ok((cached_tokens, batch.admit(&self.served.model, session, &job.prompt)?))
        });
        match admitted {
            Ok((cached_tokens, seat)) => Some(Running { seat, answering, cached_tokens, job }),
            Err(error) => {
                job.tell(Told::Failed(error.to_string()));
                None
            }
        }
    }

    /// The idle session that shares most with `prompt`, of equal ones that which was used longest ago; a new one where none shares anything and
    /// there may be one more.
    fn session(&self, idle: &mut Vec<Session>, fresh: bool, prompt: &[u32]) -> Result<Session, ModelError> {
        let shared = |place: &usize| (idle[*place].shared(prompt), std::cmp::Reverse(*place));
        match (0..idle.len()).max_by_key(shared) {
            Some(place) if !fresh || idle[place].shared(prompt) > 0 => Ok(idle.remove(place)),
            _ => Session::keeping(&self.served.model, self.served.context, self.served.keeping, &self.pool),
        }
    }

    /// Chooses a token for each row of logits; choices that have ended leave.
    fn advance(&self, batch: &mut Batch, idle: &mut Vec<Session>, running: Vec<Running>, rows: &[(Seat, Vec<f32>)]) -> Vec<Running> {
        let mut going = Vec::with_capacity(running.len());
        for mut choice in running {
            let Some((_, logits)) = rows.iter().find(|(seat, _)| *seat == choice.seat) else {
                going.push(choice); // its prompt is not read to the end yet
                continue;
            };
            match self.choose(batch, &mut choice, logits) {
                Ok(true) => going.push(choice),
                Ok(false) => {
                    idle.extend(batch.leave(choice.seat));
                    let (answer, held) = choice.answering.finish();
                    let answer_tokens = answer.ids.len();
                    choice.job.tell(Told::End { held, reason: answer.finish_reason, answer_tokens, cached_tokens: choice.cached_tokens });
                }
                Err(error) => {
                    idle.extend(batch.leave(choice.seat));
                    choice.job.tell(Told::Failed(error.to_string()));
                }
            }
        }
        going
    }

    /// Chooses one token and tells it; whether the answer goes on.
    fn choose(&self, batch: &mut Batch, choice: &mut Running, logits: &[f32]) -> Result<bool, GenerationError> {
        let Some(chosen) = choice.answering.choose(&self.served.tokenizer, logits)? else { return Ok(false) };
        let scores = choice.job.top.map(|count| Scores {
            chosen: log_probability(logits, chosen.id).unwrap_or(f64::NEG_INFINITY),
            top: NextTokens::of(logits, count).top.iter().map(|token| (token.id, token.log_probability)).collect(),
        });
        choice.job.tell(Told::Token(Token { id: chosen.id, text: chosen.text, start: chosen.start, scores }));
        if choice.answering.ended().is_some() {
            return Ok(false);
        }
        batch.push(&self.served.model, choice.seat, chosen.id)?;
        Ok(true)
    }
}

impl Job {
    fn tell(&self, told: Told) {
        // Nobody listens any more: the choice leaves before the next pass.
        let _ = self.teller.send((self.choice, told));
    }
}

/// What a server keeps of keys and values: whole windows, so that a prompt can go back to any shared beginning.
pub(crate) fn keeping(kv_type: glassbox_mechanisms::cache::KvType) -> Keeping {
    Keeping { kv_type, windows: glassbox_model::Windows::Whole }
}
