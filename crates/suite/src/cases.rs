//! The judged trials of one test, item by item.

use std::collections::BTreeMap;

use glassbox_record::{Attempt, Condition, Digest, Judgement, Outcome, PlannedTrial, Score};

use crate::compare::{judge, normalised};
use crate::suite::Suite;

/// A trial with what came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) trial: &'a PlannedTrial,
    /// None where the trial was never attempted.
    pub(crate) score: Option<&'a Score>,
}

/// All cases of one item.
#[derive(Debug, Clone)]
pub(crate) struct ItemCases<'a> {
    pub(crate) lang: &'a str,
    pub(crate) cases: Vec<Case<'a>>,
}

/// Judges every attempted trial, in the order of the plan.
///
/// - `outcomes`  the attempt that counts of each trial
pub(crate) fn score(suite: &Suite, plan: &[PlannedTrial], outcomes: &BTreeMap<Digest, Attempt>) -> Vec<Score> {
    let checks: BTreeMap<&str, _> = suite.tests.iter().map(|test| (test.id.as_str(), &test.check)).collect();
    let attempted = plan.iter().filter_map(|trial| Some((trial, outcomes.get(&trial.id)?)));
    attempted
        .filter_map(|(trial, attempt)| {
            let check = checks.get(trial.content.test.as_str())?;
            Some(match &attempt.outcome {
                Outcome::Failed(failure) => error_score(trial, &failure.message),
                Outcome::Answered(answer) => {
                    let judged = judge(&answer.text, &trial.content.expected, check);
                    Score {
                        trial: trial.id.clone(),
                        judgement: judged.judgement,
                        rung: judged.rung,
                        extracted: judged.extracted,
                        cited: judged.cited,
                        captured_by: judged.captured_by,
                        grounded: judged.grounded,
                        note: judged.note,
                    }
                }
            })
        })
        .collect()
}

fn error_score(trial: &PlannedTrial, message: &str) -> Score {
    Score {
        trial: trial.id.clone(),
        judgement: Judgement::Error,
        rung: None,
        extracted: None,
        cited: Vec::new(),
        captured_by: None,
        grounded: None,
        note: Some(message.to_owned()),
    }
}

/// The cases of one test, items in the order of their ids so that seeded statistics do not depend on the order of the run.
pub(crate) fn items_of<'a>(
    test: &str,
    plan: &'a [PlannedTrial],
    scores: &'a BTreeMap<&Digest, &'a Score>,
) -> BTreeMap<&'a str, ItemCases<'a>> {
    let mut items: BTreeMap<&str, ItemCases<'_>> = BTreeMap::new();
    for trial in plan.iter().filter(|trial| trial.content.test == test) {
        let entry = items.entry(&trial.content.item).or_insert_with(|| ItemCases { lang: &trial.content.lang, cases: Vec::new() });
        entry.cases.push(Case { trial, score: scores.get(&trial.id).copied() });
    }
    items
}

impl<'a> Case<'a> {
    pub(crate) fn condition(&self) -> &'a Condition {
        &self.trial.content.condition
    }

    /// The score of a trial that was answered; none for one that failed or was never attempted.
    pub(crate) fn answered(&self) -> Option<&'a Score> {
        self.score.filter(|score| score.judgement != Judgement::Error)
    }

    /// Whether the answer is right; none without an answer.
    pub(crate) fn right(&self) -> Option<bool> {
        self.answered().map(|score| score.judgement == Judgement::Right)
    }
}

impl<'a> ItemCases<'a> {
    /// The cases of one arm.
    pub(crate) fn of_arm(&self, arm: &str) -> Self {
        Self { lang: self.lang, cases: self.cases.iter().filter(|case| case.condition().arm == arm).copied().collect() }
    }

    /// The measurement (replicate 0) of an arm, at a place where the arm has places.
    pub(crate) fn measured(&self, arm: &str, position: Option<usize>) -> Option<Case<'a>> {
        let wanted = |case: &&Case<'_>| {
            let condition = case.condition();
            case.trial.content.replicate == 0 && condition.arm == arm && (position.is_none() || condition.position == position)
        };
        self.cases.iter().find(wanted).copied()
    }
}

/// What two answers must share to count as the same answer, whatever their wording and their citations: for wrong ones the value of the
/// document that they took it from, where there is one.
pub(crate) fn answer_key(trial: &PlannedTrial, score: &Score) -> String {
    let taken = || trial.content.expected.passages.get(score.captured_by?.checked_sub(1)?)?.value.as_deref();
    match score.judgement {
        Judgement::Right => "right".to_owned(),
        Judgement::Abstained => "abstained".to_owned(),
        Judgement::Unparsed => "unparsed".to_owned(),
        Judgement::Error => "error".to_owned(),
        Judgement::Wrong => format!("wrong {}", normalised(taken().or(score.extracted.as_deref()).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in;

    #[test]
    fn wrong_answers_are_the_same_answer_where_they_took_the_same_documents_value_in_other_words() {
        let suite = built_in("order").expect("it is built in").expect("it is valid");
        let plan = suite.plan().expect("it can be planned");
        let stated = |trial: &PlannedTrial, value: &str| {
            1 + trial.content.expected.passages.iter().position(|passage| passage.value.as_deref() == Some(value)).expect("same documents")
        };
        let item: Vec<&PlannedTrial> = plan.iter().filter(|trial| trial.content.item == plan[0].content.item).collect();
        let other = |trial: &PlannedTrial| {
            let expected = &trial.content.expected;
            expected.passages.iter().filter_map(|passage| passage.value.clone()).filter(|value| *value != expected.answer).min()
        };
        let value = other(item[0]).expect("some other document states a value");
        let score = |trial: &PlannedTrial, text: &str, captured_by| Score {
            extracted: Some(text.to_owned()),
            judgement: Judgement::Wrong,
            captured_by,
            ..error_score(trial, "")
        };
        let keys: std::collections::BTreeSet<String> = item
            .iter()
            .zip([value.clone(), format!("It is {value}"), format!("The answer is {value}.")])
            .map(|(trial, text)| answer_key(trial, &score(trial, &text, Some(stated(trial, &value)))))
            .collect();
        assert_eq!(keys.len(), 1, "{keys:?}");
        assert_ne!(answer_key(item[0], &score(item[0], "blue", None)), answer_key(item[0], &score(item[0], "red", None)));
    }
}
