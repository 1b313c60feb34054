//! Runs as they are written: resumed, interrupted, with failures, and as the first version wrote them.

use glassbox_record::{
    Answer, Event, FailureClass, Judgement, Machine, RecordError, Request, RunReader, Status, SubjectIdentity, Timestamp,
};
use glassbox_subject::{AtOnce, Capability, RecordedSubject, Script, Subject, SubjectError};
use glassbox_suite::{Destination, Ending, Finished, Suite, SuiteError, Surroundings, judge_run};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::scripted::{Crowded, small, subject};

fn run(
    suite: &Suite,
    subject: &dyn Subject,
    destination: Destination<'_>,
    stop_after: usize,
) -> Result<(Finished, Vec<Event>), SuiteError> {
    let asked = Cell::new(0);
    let mut events = Vec::new();
    let around = Surroundings {
        clock: &|| Timestamp::from_unix_ms(1_796_072_052_345),
        interrupted: &|| asked.get() >= stop_after,
        listener: &mut |event| {
            asked.set(asked.get() + usize::from(matches!(event, Event::Attempted { .. })));
            events.push(event.clone());
        },
        machine: Machine::default(),
    };
    let finished = suite.run(subject, destination, around)?;
    Ok((finished, events))
}

#[test]
fn an_interrupted_run_goes_on_where_it_was_and_ends_with_the_same_verdicts() {
    let suite = small("evidence", 12);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let healthy = || subject(&suite, Script { accuracy: 0.8, ..Script::healthy(4) });
    let (stopped, _) = run(&suite, &healthy(), Destination::New(runs.path()), 30).expect("writable");
    assert_eq!((stopped.ending, stopped.exit_code(false)), (Ending::Interrupted, 130));
    assert!(RunReader::open(&stopped.folder).expect("a run").verdicts().expect("readable").is_none());

    let (finished, events) = run(&suite, &healthy(), Destination::Resume(&stopped.folder), usize::MAX).expect("resumable");
    assert_eq!(finished.ending, Ending::Complete);
    let planned = suite.plan().expect("plannable").len();
    assert!(matches!(&events[0], Event::Started { planned: all, finished_before: 30, .. } if *all == planned), "{:?}", events[0]);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Attempted { .. })).count(), planned - 30);

    let (whole, _) = run(&suite, &healthy(), Destination::New(runs.path()), usize::MAX).expect("writable");
    assert_eq!(finished.verdicts, whole.verdicts);
    let reader = RunReader::open(&finished.folder).expect("a run");
    assert_eq!(reader.verdicts().expect("readable"), finished.verdicts);
    let (scores, verdicts) = judge_run(
        &suite,
        &reader.plan().expect("readable"),
        &reader.outcomes().expect("readable"),
        planned,
        &reader.looks().expect("readable"),
    );
    assert_eq!(Some(verdicts), finished.verdicts, "verdicts can be made again from the record");
    assert_eq!(reader.scores().expect("readable"), Some(scores));
}

#[test]
fn a_run_is_not_resumed_with_another_subject() {
    let suite = small("evidence", 4);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (stopped, _) = run(&suite, &subject(&suite, Script::healthy(1)), Destination::New(runs.path()), 5).expect("writable");
    let other = subject(&suite, Script { memory: 1.0, ..Script::healthy(1) });
    let refused = run(&suite, &other, Destination::Resume(&stopped.folder), usize::MAX);
    assert!(matches!(refused, Err(SuiteError::Record(RecordError::Drifted { .. }))), "{refused:?}");
}

#[test]
fn failures_are_results_and_too_many_end_the_run_with_their_own_exit_code() {
    let suite = small("evidence", 20);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (finished, events) =
        run(&suite, &subject(&suite, Script { fails: 1.0, ..Script::healthy(1) }), Destination::New(runs.path()), usize::MAX)
            .expect("writable");
    assert_eq!((finished.ending, finished.exit_code(false)), (Ending::TooManyErrors, 102));
    let totals = finished.verdicts.expect("errors do not prevent verdicts").totals;
    assert_eq!((totals.failed, totals.answered), (10, 0), "a subject that is down is not asked two hundred times");
    assert!(events.iter().filter(|event| matches!(event, Event::Attempted { judgement: Judgement::Error, .. })).count() == 10);

    // The subject is up again: failed and missing trials are asked, the failures stay in the record.
    let mut up = suite.clone();
    up.defaults.max_error_rate = 1.0;
    let (first, _) = run(&up, &subject(&suite, Script { fails: 0.2, ..Script::healthy(1) }), Destination::New(runs.path()), usize::MAX)
        .expect("writable");
    let failed = first.verdicts.expect("complete").totals.failed;
    assert!(failed > 10);
    let (second, _) =
        run(&up, &subject(&suite, Script { fails: 0.2, ..Script::healthy(1) }), Destination::Resume(&first.folder), usize::MAX)
            .expect("resumable");
    let totals = second.verdicts.expect("complete").totals;
    assert_eq!((totals.missing, totals.attempts), (0, totals.planned + failed));
}

#[test]
fn exit_codes_follow_the_worst_gate() {
    let suite = small("evidence", 20);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let code = |script: Script, strict: bool| {
        let (finished, _) = run(&suite, &subject(&suite, script), Destination::New(runs.path()), usize::MAX).expect("writable");
        (finished.verdicts.as_ref().map(|verdicts| verdicts.status), finished.exit_code(strict))
    };
    assert_eq!(code(Script { blind_to_middle: 1.0, ..Script::healthy(1) }, false), (Some(Status::Fail), 100));
    assert_eq!(code(Script::healthy(1), false), (Some(Status::Inconclusive), 0), "twenty items decide little");
    assert_eq!(code(Script::healthy(1), true), (Some(Status::Inconclusive), 101));
}

#[test]
fn a_full_disk_is_named_and_leaves_no_half_verdict() {
    let suite = small("evidence", 4);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let file_in_the_way = runs.path().join("runs");
    std::fs::write(&file_in_the_way, "not a folder").expect("writable");
    let refused = run(&suite, &subject(&suite, Script::healthy(1)), Destination::New(&file_in_the_way), usize::MAX);
    let message = refused.expect_err("a file stands in the way").to_string();
    assert!(message.contains(&file_in_the_way.display().to_string()), "{message}");
}

#[test]
fn failing_answers_carry_what_they_read() {
    let suite = small("evidence", 20);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let blind = subject(&suite, Script { blind_to_middle: 1.0, ..Script::healthy(1) });
    let (finished, _) = run(&suite, &blind, Destination::New(runs.path()), usize::MAX).expect("writable");
    let test = &finished.verdicts.expect("nobody interrupted").tests[0];
    let peak = |slice: &str| {
        let series = test.series.iter().find(|series| series.name == "gold_attention_by_layer" && series.slice.as_deref() == Some(slice));
        series.expect("answers were watched").points.iter().map(|point| point.value).fold(0.0, f64::max)
    };
    assert!(peak("wrong answers") < 0.2 && peak("right answers") > 0.6);
    assert!(test.notes.iter().any(|note| note.starts_with("On 8 watched wrong answers the gold document got at most")), "{:?}", test.notes);
}

#[test]
fn many_at_once_give_the_numbers_of_one_after_the_other() {
    let suite = small("evidence", 12);
    let runs = tempfile::tempdir().expect("a temporary folder");
    let healthy = || subject(&suite, Script { accuracy: 0.8, ..Script::healthy(4) });
    let (alone, _) = run(&suite, &healthy(), Destination::New(runs.path()), usize::MAX).expect("writable");
    for at_once in [2, 7, 10_000] {
        let crowded = Crowded(healthy(), at_once);
        let (finished, events) = run(&suite, &crowded, Destination::New(runs.path()), usize::MAX).expect("writable");
        assert_eq!(finished.verdicts, alone.verdicts, "{at_once} at once");
        let count =
            |wanted: usize| events.iter().filter(|event| matches!(event, Event::Attempted { finished, .. } if *finished == wanted)).count();
        let planned = suite.plan().expect("plannable").len();
        assert!((1..=planned).all(|finished| count(finished) == 1), "progress counts each trial once");
    }
    // Stopped with some under way: all of them are written, and the rest follows.
    let (stopped, _) = run(&suite, &Crowded(healthy(), 4), Destination::New(runs.path()), 30).expect("writable");
    assert_eq!(stopped.ending, Ending::Interrupted);
    let written = RunReader::open(&stopped.folder).expect("a run").attempts().expect("readable").len();
    assert!((30..34).contains(&written), "{written} written");
    let (finished, _) = run(&suite, &Crowded(healthy(), 4), Destination::Resume(&stopped.folder), usize::MAX).expect("resumable");
    assert_eq!(finished.verdicts, alone.verdicts);
}

/// Answers so many requests and then has no budget left.
struct Poor<S> {
    subject: S,
    left: AtomicUsize,
    at_once: usize,
}

impl<S: Subject + Sync> Subject for Poor<S> {
    fn identity(&self) -> SubjectIdentity {
        self.subject.identity()
    }

    fn shows(&self, _: Capability) -> bool {
        false
    }

    fn answer(&self, request: &Request) -> Result<Answer, SubjectError> {
        let spend = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend) {
            Ok(_) => self.subject.answer(request),
            Err(_) => Err(SubjectError::new(FailureClass::Budget, "the budget of 25 requests is spent")),
        }
    }

    fn at_once(&self) -> Option<AtOnce<'_>> {
        Some(AtOnce { subject: self, requests: NonZeroUsize::new(self.at_once).expect("at least one") })
    }
}

#[test]
fn a_spent_budget_stops_the_run_without_a_trace_and_the_run_goes_on_later() {
    let suite = small("evidence", 12);
    let runs = tempfile::tempdir().expect("a temporary folder");
    for at_once in [1, 3] {
        let poor = |left: usize| Poor { subject: subject(&suite, Script::healthy(4)), left: AtomicUsize::new(left), at_once };
        let (stopped, _) = run(&suite, &poor(25), Destination::New(runs.path()), usize::MAX).expect("writable");
        assert_eq!((stopped.ending, stopped.exit_code(false), stopped.verdicts.is_none()), (Ending::OutOfBudget, 130, true));
        assert_eq!(stopped.limit.as_deref(), Some("the budget of 25 requests is spent"));
        let attempts = RunReader::open(&stopped.folder).expect("a run").attempts().expect("readable");
        assert_eq!((attempts.len(), attempts.iter().filter(|attempt| attempt.outcome.answer().is_some()).count()), (25, 25));
        let (finished, _) = run(&suite, &poor(10_000), Destination::Resume(&stopped.folder), usize::MAX).expect("resumable");
        let totals = finished.verdicts.expect("complete").totals;
        assert_eq!((totals.missing, totals.failed, totals.attempts), (0, 0, totals.planned));
    }
}

#[test]
fn a_recorded_subject_gives_the_numbers_of_the_run_again_and_knows_what_it_never_heard() {
    let suite = small("evidence", 12);
    let runs = tempfile::tempdir().expect("a temporary folder");
    // Noise, so that the answers to the same request differ.
    let asked = subject(&suite, Script { accuracy: 0.8, noise: 0.3, ..Script::healthy(4) });
    let blind = Poor { subject: asked, left: AtomicUsize::new(usize::MAX), at_once: 1 };
    let (first, _) = run(&suite, &blind, Destination::New(runs.path()), usize::MAX).expect("writable");
    let recorded = RecordedSubject::open(&RunReader::open(&first.folder).expect("a run")).expect("readable");
    let (again, _) = run(&suite, &recorded, Destination::New(runs.path()), usize::MAX).expect("writable");
    assert_eq!(again.verdicts, first.verdicts);
    let wider = small("evidence", 13);
    let recorded = RecordedSubject::open(&RunReader::open(&first.folder).expect("a run")).expect("readable");
    let plan = wider.plan().expect("plannable");
    let unheard: Vec<FailureClass> =
        plan.iter().filter_map(|trial| recorded.answer(&trial.content.request).err()).map(|error| error.class).collect();
    assert!(!unheard.is_empty() && unheard.iter().all(|class| *class == FailureClass::NotRecorded), "{unheard:?}");
}
