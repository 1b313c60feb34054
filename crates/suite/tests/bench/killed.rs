//! A run that is killed a hundred times at random moments, with three requests under way, ends with the verdicts of one that was never killed and asked one
//! after the other.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use glassbox_record::{Event, Machine, RunReader, Timestamp};
use glassbox_stats::random::Dice;
use glassbox_subject::Script;
use glassbox_suite::{Destination, Finished, Suite, Surroundings};

use crate::scripted::{Crowded, small, subject};

/// Tells the re-executed test binary that it is the process to be killed.
const VICTIM: &str = "GLASSBOX_TEST_VICTIM";
const KILLS: usize = 100;
const PAUSE: Duration = Duration::from_micros(700);
/// Bytes of the record, about three answers: on a machine of any speed a hundred kills fall inside the run of 580.
const GROWTH: usize = 2_400;

fn suite() -> Suite {
    let mut suite = small("evidence", 60);
    suite.defaults.stats.resamples = 199;
    suite
}

fn script() -> Script {
    Script { blind_to_middle: 0.3, accuracy: 0.9, ..Script::healthy(5) }
}

fn only_run(runs: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(runs).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    folders.into_iter().find(|folder| folder.join("manifest.json").is_file())
}

fn go_on(runs: &Path, pause: Duration, at_once: usize) -> Finished {
    let suite = suite();
    let subject = Crowded(subject(&suite, script()), at_once);
    let run = only_run(runs);
    let destination = run.as_deref().map_or(Destination::New(runs), Destination::Resume);
    let started = Instant::now();
    let around = Surroundings {
        clock: &|| Timestamp::from_unix_ms(1_796_072_052_345 + i64::try_from(started.elapsed().as_millis()).unwrap_or(0)),
        interrupted: &|| false,
        listener: &mut |event| {
            if matches!(event, Event::Attempted { .. }) {
                std::thread::sleep(pause);
            }
        },
        machine: Machine::default(),
    };
    suite.run(&subject, destination, around).expect("the folder is writable and nobody else writes")
}

/// Waits until the answers on the disk have grown by so many bytes: a moment of the run, however fast the machine is.
fn wait_for_growth(runs: &Path, bytes: u64) {
    let held = || only_run(runs).and_then(|run| std::fs::metadata(run.join("trials.jsonl")).ok()).map_or(0, |file| file.len());
    let (before, started) = (held(), Instant::now());
    while held() <= before + bytes && started.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Not a test of its own: the process that [`a_hundred_kills_lose_nothing_and_count_nothing_twice`] starts and kills.
#[test]
fn the_victim_runs_only_when_it_is_told_where() {
    if let Some(runs) = std::env::var_os(VICTIM) {
        go_on(Path::new(&runs), PAUSE, 3);
    }
}

#[test]
fn a_hundred_kills_lose_nothing_and_count_nothing_twice() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let binary = std::env::current_exe().expect("a running test has a binary");
    let mut dice = Dice::new(20_261_130);
    let mut answered_before = 0;
    let (mut kills, mut inside) = (0, 0);
    while kills < KILLS {
        let mut victim = Command::new(&binary)
            .args(["killed::the_victim_runs_only_when_it_is_told_where", "--exact", "--quiet"])
            .env(VICTIM, runs.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the test binary can be run again");
        if kills % 4 == 0 {
            std::thread::sleep(Duration::from_micros(dice.below(10_000) as u64));
        } else {
            wait_for_growth(runs.path(), dice.below(GROWTH) as u64);
        }
        let was_running = victim.try_wait().expect("the victim can be asked").is_none();
        victim.kill().expect("the victim can be killed");
        victim.wait().expect("the victim ends");
        kills += 1;
        inside += usize::from(was_running);
        if let Some(folder) = only_run(runs.path()) {
            let reader = RunReader::open(&folder).expect("a killed run can be read");
            let answered =
                reader.outcomes().expect("a killed run can be read").values().filter(|attempt| attempt.outcome.answer().is_some()).count();
            assert!(answered >= answered_before, "an answer was lost: {answered} after {answered_before}");
            answered_before = answered;
        }
    }
    let killed = go_on(runs.path(), Duration::ZERO, 3);
    let fresh = tempfile::tempdir().expect("a temporary folder");
    let unkilled = go_on(fresh.path(), Duration::ZERO, 1);

    let plan = suite().plan().expect("it can be planned");
    let reader = RunReader::open(&killed.folder).expect("a run");
    assert_eq!(reader.plan().expect("readable"), plan);
    let attempts = reader.attempts().expect("readable");
    let trials: std::collections::BTreeSet<_> = attempts.iter().map(|attempt| &attempt.trial).collect();
    assert_eq!((trials.len(), attempts.len()), (plan.len(), plan.len()), "every trial once, none twice");
    assert_eq!(reader.looks().expect("readable"), RunReader::open(&unkilled.folder).expect("a run").looks().expect("readable"));
    assert_eq!(killed.verdicts, unkilled.verdicts);
    assert!(inside >= KILLS * 9 / 10, "only {inside} of {KILLS} kills met a running process");
}
