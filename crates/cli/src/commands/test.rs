//! `test`: a suite against a model, to verdicts.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use glassbox_record::{Event, Machine, RunReader};
use glassbox_report::{Lang, Run};
use glassbox_subject::{NativeSubject, Subject};
use glassbox_suite::{BUILT_IN_SUITES, Destination, Suite, SuiteError, Surroundings, built_in};

use crate::args::{RunChoice, Test};
use crate::exit::{Exit, Failure};
use crate::opened::{Engine, Opened};
use crate::{Outcome, clock, remote, signals, terminal};

pub(crate) fn run(command: &Test) -> Outcome {
    let mut suite = open_suite(&command.suite)?;
    let choice = &command.run;
    let Some(subject) = remote::subject(&command.model.model, &command.endpoint, &choice.runs, choice.quiet)? else {
        return run_suite(suite, Opened::open(&command.model)?, choice);
    };
    let Some(resumed) = prepare(&mut suite, choice)? else { return Ok(Exit::NothingSelected) };
    ask(&suite, subject.as_ref(), resumed.as_deref(), choice)
}

/// A suite file by its path, or a built-in suite by its name.
pub(crate) fn open_suite(name: &str) -> Result<Suite, Failure> {
    let path = Path::new(name);
    let suite = match built_in(name) {
        Some(suite) if !path.is_file() => suite,
        _ => Suite::open(path),
    };
    suite.map_err(|error| {
        let hint = match &error {
            SuiteError::Unreadable { .. } => format!("built-in suites: {}", BUILT_IN_SUITES.join(", ")),
            _ => "correct the suite or its data there; `suites/evidence.yaml` is one to compare with".to_owned(),
        };
        suite_failure(error).or_hint(|| hint)
    })
}

/// Runs the suite, writes the reports, prints the verdicts.
pub(crate) fn run_suite(mut suite: Suite, opened: Opened, choice: &RunChoice) -> Outcome {
    opened.decoder()?;
    let Some(resumed) = prepare(&mut suite, choice)? else { return Ok(Exit::NothingSelected) };
    opened.tokenizer().map_err(|failure| failure.hint("a suite asks in words: put the model's tokenizer.json beside its weights"))?;
    let Engine::Decoder(model) = opened.engine else { return Err(Failure::internal(anyhow::anyhow!("an encoder came to be asked"))) };
    let subject = NativeSubject::new(opened.name.clone(), &opened.checkpoint, model, opened.workers, opened.memory_limit);
    let subject = subject.map_err(Failure::usage)?.with_kv_type(opened.kv_type);
    ask(&suite, &subject, resumed.as_deref(), choice)
}

/// Limits the suite as the user wishes, and finds the run to go on with, if one is named; `None` where nothing is selected.
fn prepare(suite: &mut Suite, choice: &RunChoice) -> Result<Option<Option<PathBuf>>, Failure> {
    if let Some(limit) = choice.limit {
        suite.limit_items(limit);
    }
    let planned = suite.plan().map_err(suite_failure)?.len();
    if planned == 0 {
        terminal::say_error("the suite selects no trial", Some("raise --limit, or look into the suite's tests and data"));
        return Ok(None);
    }
    signals::listen();
    let resumed = choice.resume.as_deref().map(|name| find_run(&choice.runs, name)).transpose()?;
    if let (Some(folder), Some(_)) = (&resumed, choice.limit) {
        check_limit(folder, planned)?;
    }
    Ok(Some(resumed))
}

/// Asks everything that is open, writes the reports, prints the verdicts.
fn ask(suite: &Suite, subject: &dyn Subject, resumed: Option<&Path>, choice: &RunChoice) -> Outcome {
    let name = subject.identity().name;
    let bar = terminal::progress(0, "asking", choice.quiet);
    let begun = std::cell::Cell::new(false);
    let mut listener = |event: &Event| match event {
        Event::Started { run, planned, finished_before } => {
            begun.set(true);
            bar.set_length(*planned as u64);
            bar.set_position(*finished_before as u64);
            if !choice.quiet {
                terminal::remark(&format!("run {run}: {planned} trials on {name}"));
            }
        }
        Event::Attempted { finished, .. } => bar.set_position(*finished as u64),
        Event::Looked { finished, planned, .. } => {
            bar.set_message("watching");
            bar.set_length(*planned as u64);
            bar.set_position(*finished as u64);
        }
        _ => {}
    };
    let finished = suite.run(
        subject,
        resumed.map_or(Destination::New(&choice.runs), Destination::Resume),
        Surroundings {
            clock: &clock::now,
            interrupted: &|| signals::interrupted().load(Ordering::SeqCst),
            listener: &mut listener,
            machine: Machine {
                os: std::env::consts::OS.to_owned(),
                arch: std::env::consts::ARCH.to_owned(),
                processors: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            },
        },
    );
    bar.finish_and_clear();
    // Only what was begun can go on.
    let go_on = |failure: Failure| if begun.get() { failure.resumable() } else { failure };
    let finished = finished.map_err(|error| go_on(suite_failure(error)))?;
    if finished.verdicts.is_none() {
        let why = finished.limit.as_deref().unwrap_or("interrupted");
        terminal::remark(&format!("{why}; go on with --resume {}", finished.folder.display()));
        return Ok(Exit::Interrupted);
    }
    show(&finished.folder, choice.language.lang, choice).map_err(go_on)?;
    Ok(Exit::of_suite(finished.exit_code(choice.strict)))
}

/// Writes the reports of a finished run and prints its verdicts.
fn show(folder: &Path, lang: Lang, choice: &RunChoice) -> Result<(), Failure> {
    let run = RunReader::open(folder).map_err(Failure::internal).and_then(|reader| Run::load(&reader).map_err(Failure::internal))?;
    let written = run.write_reports(folder, lang).map_err(Failure::output)?;
    if choice.json {
        terminal::print_json(&run.json())
    } else if choice.quiet {
        terminal::print(&format!("{}\n", folder.join("report.html").display()))?;
        Ok(())
    } else {
        // The summary ends with the path of the page; the rest stands beside it.
        terminal::print_lines(&run.terminal_summary(lang, terminal::width()))?;
        let beside = |path: &PathBuf| path.extension().is_none_or(|extension| extension != "html");
        for path in written.iter().filter(|path| beside(path)) {
            terminal::remark(&format!("wrote {}", path.display()));
        }
        Ok(())
    }
}

/// A run keeps the plan that it was begun with: another `--limit` would be silently ignored.
fn check_limit(folder: &Path, planned: usize) -> Result<(), Failure> {
    let recorded = RunReader::open(folder).map_err(Failure::usage)?.manifest().trials;
    if recorded == planned {
        return Ok(());
    }
    Err(Failure::usage(anyhow::anyhow!("`{}` was begun with {recorded} trials, and --limit now plans {planned}", folder.display()))
        .hint("resume without --limit, or begin a new run"))
}

/// A run by its folder, its name inside the folder of runs, or `last`.
pub(crate) fn find_run(runs: &Path, name: &str) -> Result<PathBuf, Failure> {
    if name == "last" {
        let newest = glassbox_record::run_folders(runs).map_err(Failure::usage)?.pop();
        return newest.ok_or_else(|| {
            Failure::usage(anyhow::anyhow!("there is no run in `{}`", runs.display())).hint("`--runs FOLDER` names the folder of the runs")
        });
    }
    let named = [PathBuf::from(name), runs.join(name)];
    named.iter().find(|path| path.is_dir()).cloned().ok_or_else(|| {
        Failure::usage(anyhow::anyhow!("there is no run `{name}`, here or in `{}`", runs.display())).hint("`last` takes the newest run")
    })
}

/// A record that cannot be written is the disk's fault; everything else is the user's to mend.
pub(crate) fn suite_failure(error: SuiteError) -> Failure {
    let hint = error.hint().map(str::to_owned);
    let failure = match error {
        SuiteError::Record(ref record) if record.is_io() => Failure::output(error),
        _ => Failure::usage(error),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
