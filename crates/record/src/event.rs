use serde::{Deserialize, Serialize};

use crate::{Digest, Judgement, Status};

/// What happens during a run, as progress displays and `--json` streams show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run begins or goes on.
    Started {
        /// Name of the run.
        run: String,
        /// Trials of the plan.
        planned: usize,
        /// Trials that an earlier process already finished.
        finished_before: usize,
    },
    /// A trial was attempted.
    Attempted {
        /// The trial.
        trial: Digest,
        /// Id of the test.
        test: String,
        /// Id of the item.
        item: String,
        /// The condition in words.
        condition: String,
        /// What the answer is worth.
        judgement: Judgement,
        /// Trials finished so far, earlier processes included.
        finished: usize,
        /// Milliseconds it took.
        elapsed_ms: u64,
    },
    /// A trial was watched.
    Looked {
        /// The trial.
        trial: Digest,
        /// How many have been watched.
        finished: usize,
        /// How many will be.
        planned: usize,
    },
    /// A gate came out.
    Result {
        /// Id of the test.
        test: String,
        /// Name of the metric.
        metric: String,
        /// How it came out.
        status: Status,
        /// The verdict in one sentence.
        sentence: String,
    },
    /// The run is over and its verdicts are written.
    Finished {
        /// Name of the run.
        run: String,
        /// The worst of all gates.
        status: Status,
        /// Trials whose last attempt failed.
        failed: usize,
    },
}
