//! Answers of an earlier run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use glassbox_record::{Answer, Digest, FailureClass, Outcome, RecordError, Request, RunReader, SubjectIdentity, SubjectKind};

use crate::{Capability, Subject, SubjectError};

/// Answers as an earlier run did, without the subject that was asked then: to judge its answers again.
///
/// The same request gets the same answer. Where the run asked it several times, as for the noise floor, its answers come in the order of its
/// plan, and then again from the first. A request that the run did not hold is a failure of the class `not_recorded`.
#[derive(Debug)]
pub struct RecordedSubject {
    identity: SubjectIdentity,
    outcomes: HashMap<Digest, Vec<Outcome>>,
    asked: Mutex<HashMap<Digest, usize>>,
    shows_first_token: bool,
}

impl RecordedSubject {
    /// Reads the outcomes of a run: of each trial the one that counts.
    ///
    /// # Errors
    ///
    /// A record that cannot be read.
    pub fn open(reader: &RunReader) -> Result<Self, RecordError> {
        let mut counted = reader.outcomes()?;
        let mut outcomes: HashMap<Digest, Vec<Outcome>> = HashMap::new();
        let mut shows_first_token = false;
        for trial in reader.plan()? {
            // A trial that was never asked has no outcome; asking it again is then not recorded.
            let Some(attempt) = counted.remove(&trial.id) else { continue };
            shows_first_token |= attempt.outcome.answer().is_some_and(|answer| !answer.first_token.is_empty());
            outcomes.entry(Digest::of_content(&trial.content.request)?).or_default().push(attempt.outcome);
        }
        let manifest = reader.manifest();
        let of = &manifest.fingerprint.subject;
        let mut facts: std::collections::BTreeMap<String, String> =
            of.facts.iter().map(|(name, value)| (format!("recorded {name}"), value.clone())).collect();
        facts.insert("recorded run".to_owned(), manifest.run.clone());
        facts.insert("recorded subject".to_owned(), of.name.clone());
        let identity = SubjectIdentity { kind: SubjectKind::Recorded, name: format!("recorded:{}", manifest.run), facts };
        Ok(Self { identity, outcomes, asked: Mutex::default(), shows_first_token })
    }
}

impl Subject for RecordedSubject {
    fn identity(&self) -> SubjectIdentity {
        self.identity.clone()
    }

    fn shows(&self, capability: Capability) -> bool {
        match capability {
            Capability::Attention | Capability::TokenIds => false,
            Capability::FirstToken => self.shows_first_token,
        }
    }

    fn answer(&self, request: &Request) -> Result<Answer, SubjectError> {
        let internal = |error: RecordError| SubjectError::new(FailureClass::Internal, error.to_string());
        let digest = Digest::of_content(request).map_err(internal)?;
        let Some(outcomes) = self.outcomes.get(&digest) else {
            let message = format!("`{}` does not hold this request; ask the subject itself", self.identity.name);
            return Err(SubjectError::new(FailureClass::NotRecorded, message));
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let times = asked.entry(digest).or_default();
        let outcome = &outcomes[*times % outcomes.len()];
        *times += 1;
        match outcome {
            Outcome::Answered(answer) => Ok(answer.clone()),
            Outcome::Failed(failure) => {
                Err(SubjectError { retries: failure.retries.clone(), ..SubjectError::new(failure.class, failure.message.clone()) })
            }
        }
    }
}
