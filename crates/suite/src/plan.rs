//! From a suite to the list of its trials: deterministic, before any model is loaded.
//!
//! All trials of one item are one group. Groups come in seeded order, and inside a group the conditions come in seeded order, so that a
//! subject that drifts during the run does not drift along with a condition.

use glassbox_record::{Condition, Expected, Message, Passage, PassageRole, Piece, PlannedTrial, Request, Role, Sampling, TrialContent};
use glassbox_stats::random::{Dice, seed_from};

use crate::compare::{contains_value, normalised};
use crate::data::Item;
use crate::design::{Design, Distance, DocumentDesign};
use crate::schema::{Arm, Defaults, DistractorSource, MessageSpec, PartSpec, PromptSet, TurnSpec};
use crate::suite::{Suite, Test};
use crate::{SuiteError, orders};

/// The question as the data has it, among its rewrites.
pub(crate) const GIVEN: &str = "given";

impl Suite {
    /// Every trial of the suite, in the order in which they will be asked.
    ///
    /// Errors: an item without enough documents for the design.
    pub fn plan(&self) -> Result<Vec<PlannedTrial>, SuiteError> {
        let mut groups = Vec::new();
        for test in &self.tests {
            for (rank, item) in test.items.iter().enumerate() {
                let mut group = Planner { test, defaults: &self.defaults, item, rank }.group()?;
                Dice::new(self.seed(&["conditions", &test.id, &item.id])).shuffle(&mut group);
                groups.push(group);
            }
        }
        Dice::new(self.seed(&["groups"])).shuffle(&mut groups);
        Ok(groups.into_iter().flatten().collect())
    }

    /// A seed of its own for each purpose, made of the suite's.
    pub(crate) fn seed(&self, purpose: &[&str]) -> u64 {
        let mut parts = vec!["suite seed".to_owned(), self.defaults.seed.to_string()];
        parts.extend(purpose.iter().map(|part| (*part).to_owned()));
        seed_from(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Plans the group of one item.
struct Planner<'a> {
    test: &'a Test,
    defaults: &'a Defaults,
    item: &'a Item,
    /// Place of the item in the test's order; spreads the design evenly over items.
    rank: usize,
}

impl Planner<'_> {
    fn group(&self) -> Result<Vec<PlannedTrial>, SuiteError> {
        let others = self.others()?;
        match &self.test.design {
            Design::EvidencePosition { positions, arms, .. } => self.evidence(&others, positions, arms.iter().copied()),
            Design::OrderSensitivity { documents, orders } => self.orders(&others, documents.passages, *orders),
            Design::FactConflict { .. } => self.conflict(&others),
            Design::MinimalRewrite { .. } => self.rewrites(&others),
            Design::MemoryDecay { distances, untold, .. } => self.memory(&others, distances, *untold),
        }
    }

    fn evidence(&self, others: &[Passage], positions: &[usize], arms: impl Iterator<Item = Arm>) -> Result<Vec<PlannedTrial>, SuiteError> {
        let at = |position: usize| {
            let mut passages = others.to_vec();
            passages.insert(position - 1, self.gold());
            passages
        };
        let condition = |position| Condition { position: Some(position), cite: Some(self.test.cite), ..Condition::of_arm("position") };
        let prompts = &self.test.prompts[&self.item.lang];
        let rotated = positions[self.rank % positions.len()];
        let mut group = Vec::new();
        for position in positions {
            group.push(self.trial(condition(*position), 0, &prompts.ask, at(*position))?);
        }
        if self.defaults.floor.items.is_none_or(|most| self.rank < most) {
            for replicate in 1..self.defaults.floor.replicates {
                group.push(self.trial(condition(rotated), replicate, &prompts.ask, at(rotated))?);
            }
        }
        for arm in arms {
            group.push(match arm {
                Arm::Closed => self.trial(Condition::of_arm("closed"), 0, self.checked(prompts.closed_book.as_ref())?, Vec::new())?,
                Arm::Oracle => {
                    let condition = Condition { position: Some(1), cite: Some(self.test.cite), ..Condition::of_arm("oracle") };
                    self.trial(condition, 0, &prompts.ask, vec![self.gold()])?
                }
                Arm::NoGold => {
                    let condition = Condition { cite: Some(self.test.cite), ..Condition::of_arm("no_gold") };
                    self.trial(condition, 0, &prompts.ask, others.to_vec())?
                }
                Arm::NoCitation => {
                    let condition = Condition { position: Some(rotated), cite: Some(false), ..Condition::of_arm("no_citation") };
                    self.trial(condition, 0, self.checked(prompts.ask_without_citation.as_ref())?, at(rotated))?
                }
            });
        }
        Ok(group)
    }

    fn orders(&self, others: &[Passage], passages: usize, orders: usize) -> Result<Vec<PlannedTrial>, SuiteError> {
        let mut identity = others.to_vec();
        identity.insert(self.rank % passages, self.gold());
        let prompt = &self.test.prompts[&self.item.lang].ask;
        let trial = |order: &orders::NamedOrder, replicate: u32| {
            let permuted: Vec<Passage> = order.order.iter().map(|block| identity[*block].clone()).collect();
            let place = permuted.iter().position(|passage| passage.role == PassageRole::Gold).map(|index| index + 1);
            let condition = Condition {
                position: place,
                cite: Some(self.test.cite),
                order: Some(order.order.clone()),
                order_name: Some(order.name.clone()),
                ..Condition::of_arm("order")
            };
            self.trial(condition, replicate, prompt, permuted)
        };
        let seed = seed_from(&["orders", &self.defaults.seed.to_string(), &self.test.id]);
        let chosen = orders::choose(passages, orders, self.rank, seed);
        let mut group: Vec<PlannedTrial> = chosen.iter().map(|order| trial(order, 0)).collect::<Result<_, _>>()?;
        // Separate calls, none of them among the orders: an answer that stood in both arms would hide a difference between them.
        for replicate in 1..=self.defaults.floor.replicates {
            group.push(trial(&chosen[0], replicate)?);
        }
        Ok(group)
    }

    fn rewrites(&self, others: &[Passage]) -> Result<Vec<PlannedTrial>, SuiteError> {
        let prompts = &self.test.prompts[&self.item.lang];
        let mut passages = others.to_vec();
        passages.insert(self.rank % (others.len() + 1), self.gold());
        let ask = |name: &str, wording: &str, replicate: u32| {
            let item = Item { question: wording.replace("{question}", &self.item.question), ..self.item.clone() };
            let messages = prompts.ask.iter().map(|message| render(message, &item, &passages)).collect();
            let condition = Condition { cite: Some(self.test.cite), order_name: Some(name.to_owned()), ..Condition::of_arm("rewrite") };
            self.planned(condition, replicate, messages, passages.clone())
        };
        let mut group = vec![ask(GIVEN, "{question}", 0)?];
        for (name, wording) in &prompts.rewrites {
            group.push(ask(name, wording, 0)?);
        }
        // Separate calls: an answer that stood in both arms would hide a difference between them.
        for replicate in 1..=self.defaults.floor.replicates {
            group.push(ask(GIVEN, "{question}", replicate)?);
        }
        Ok(group)
    }

    fn conflict(&self, others: &[Passage]) -> Result<Vec<PlannedTrial>, SuiteError> {
        let prompts = &self.test.prompts[&self.item.lang];
        let of_arm = |arm: &str, position| Condition { position, cite: Some(self.test.cite), ..Condition::of_arm(arm) };
        let ask = |condition, replicate, passages| self.trial(condition, replicate, &prompts.ask, passages);
        let with_gold = |passages: [&[Passage]; 2]| passages.concat();
        let gold = [self.gold()];
        let mut group = vec![
            self.trial(Condition::of_arm("closed"), 0, self.checked(prompts.closed_book.as_ref())?, Vec::new())?,
            ask(of_arm("oracle", Some(1)), 0, gold.to_vec())?,
            ask(of_arm("conflict", None), 0, others.to_vec())?,
            ask(of_arm("both", Some(1)), 0, with_gold([&gold, others]))?,
            ask(of_arm("both", Some(2)), 0, with_gold([others, &gold]))?,
        ];
        // Separate calls, as for orders: what one order does to itself is the noise of changing places.
        for replicate in 1..=self.defaults.floor.replicates {
            group.push(ask(of_arm("both", Some(1)), replicate, with_gold([&gold, others]))?);
        }
        Ok(group)
    }

    fn memory(&self, others: &[Passage], distances: &[Distance], untold: bool) -> Result<Vec<PlannedTrial>, SuiteError> {
        let prompts = &self.test.prompts[&self.item.lang];
        let mut passages = others.to_vec();
        passages.insert(self.rank % (others.len() + 1), self.gold());
        let ask = |distance: &Distance, replicate: u32| {
            let mut messages: Vec<Message> = prompts.ask.iter().map(|message| render(message, self.item, &passages)).collect();
            let at = messages.len() - 1;
            messages.splice(at..at, between(prompts, *distance, self.rank));
            let mut condition = Condition { cite: Some(self.test.cite), ..Condition::of_arm("told") };
            match distance {
                Distance::Turns(turns) => condition.turns = Some(*turns),
                Distance::Characters(characters) => condition.characters = Some(*characters),
            }
            self.planned(condition, replicate, messages, passages.clone())
        };
        let mut group: Vec<PlannedTrial> = distances.iter().map(|distance| ask(distance, 0)).collect::<Result<_, _>>()?;
        if self.defaults.floor.items.is_none_or(|most| self.rank < most) {
            let rotated = &distances[self.rank % distances.len()];
            for replicate in 1..self.defaults.floor.replicates {
                group.push(ask(rotated, replicate)?);
            }
        }
        if untold {
            group.push(self.trial(Condition::of_arm("closed"), 0, self.checked(prompts.closed_book.as_ref())?, Vec::new())?);
        }
        Ok(group)
    }

    /// The documents beside the gold one, in the order that every condition of the item keeps.
    fn others(&self) -> Result<Vec<Passage>, SuiteError> {
        let DocumentDesign { passages, source, contradictory } = self.test.design.documents();
        let wanted = passages - 1 - contradictory;
        let mut plain: Vec<&String> = match source {
            DistractorSource::Own => self.item.distractors.iter().collect(),
            DistractorSource::Random => {
                let golds = self.test.golds.get(&self.item.lang).into_iter().flatten();
                golds.filter(|text| self.item.right_values().all(|value| !contains_value(text, value))).collect()
            }
        };
        let mut dice = Dice::new(seed_from(&["documents", &self.defaults.seed.to_string(), &self.item.id]));
        dice.shuffle(&mut plain);
        if plain.len() < wanted {
            let reason = format!(
                "item `{}` has {} documents without the answer to choose from, and the design wants {wanted}",
                self.item.id,
                plain.len()
            );
            return Err(SuiteError::Plan { test: self.test.id.clone(), reason });
        }
        let passage = |role, text: &String| Passage { role, text: text.clone(), value: self.value_in(text) };
        let mut others: Vec<Passage> = plain.into_iter().take(wanted).map(|text| passage(PassageRole::Distractor, text)).collect();
        others.extend(self.item.contradictory.iter().take(contradictory).map(|text| passage(PassageRole::Contradictory, text)));
        dice.shuffle(&mut others);
        Ok(others)
    }

    fn gold(&self) -> Passage {
        Passage { role: PassageRole::Gold, text: self.item.gold.clone(), value: Some(self.item.answer.clone()) }
    }

    /// The value that a document states: the longest of all answers to the same kind of question that stands in it.
    fn value_in(&self, text: &str) -> Option<String> {
        let known = self.test.values.get(&(self.item.lang.clone(), self.item.attribute.clone()))?;
        let stated = known.iter().filter(|value| contains_value(text, value));
        stated.max_by_key(|value| normalised(value).chars().count()).cloned()
    }

    /// The seed of one random answer. Every trial has its own: items that share a stream share their luck, and no interval over items would hold.
    fn stream(&self, condition: &Condition, replicate: u32) -> u64 {
        let seed = self.defaults.seed.to_string();
        seed_from(&["answer", &seed, &self.test.id, &self.item.id, &condition.label(), &replicate.to_string()])
    }

    fn checked<'p>(&self, prompt: Option<&'p Vec<MessageSpec>>) -> Result<&'p Vec<MessageSpec>, SuiteError> {
        // Reading the suite already refused this; a library user may have changed the suite since.
        prompt.ok_or_else(|| SuiteError::Plan { test: self.test.id.clone(), reason: "an arm has no prompt".to_owned() })
    }

    fn trial(
        &self,
        condition: Condition,
        replicate: u32,
        prompt: &[MessageSpec],
        passages: Vec<Passage>,
    ) -> Result<PlannedTrial, SuiteError> {
        let messages = prompt.iter().map(|message| render(message, self.item, &passages)).collect();
        self.planned(condition, replicate, messages, passages)
    }

    fn planned(
        &self,
        condition: Condition,
        replicate: u32,
        messages: Vec<Message>,
        passages: Vec<Passage>,
    ) -> Result<PlannedTrial, SuiteError> {
        let sampling = &self.defaults.sampling;
        let random = sampling.temperature > 0.0;
        let request = Request {
            messages,
            max_tokens: sampling.max_tokens,
            sampling: if random { Sampling::Temperature(sampling.temperature) } else { Sampling::Greedy },
            stop: sampling.stop.clone(),
            seed: if random { self.stream(&condition, replicate) } else { self.defaults.seed },
        };
        let expected = Expected {
            question: self.item.question.clone(),
            answer: self.item.answer.clone(),
            aliases: self.item.aliases.clone(),
            passages,
        };
        let content = TrialContent {
            test: self.test.id.clone(),
            item: self.item.id.clone(),
            lang: self.item.lang.clone(),
            condition,
            replicate,
            request,
            expected,
        };
        Ok(PlannedTrial::new(content)?)
    }
}

/// Neutral messages that lie between what is told and the question. Each item begins at another turn, so that no distance has turns of its own.
fn between(prompts: &PromptSet, distance: Distance, rank: usize) -> Vec<Message> {
    let turns = &prompts.between;
    let said = |role, text: String| Message { role, pieces: vec![Piece { span: None, text }] };
    let from = |index: usize| &turns[(rank + index) % turns.len()];
    match distance {
        Distance::Turns(count) => {
            let turn = |turn: &TurnSpec| [said(Role::User, turn.user.clone()), said(Role::Assistant, turn.assistant.clone())];
            (0..count).map(from).flat_map(turn).collect()
        }
        Distance::Characters(0) => Vec::new(),
        Distance::Characters(count) => {
            let mut text = String::new();
            let mut characters = 0;
            for turn in (0..).map(from) {
                if characters >= count {
                    break;
                }
                let more = format!("{} {}\n", turn.user, turn.assistant);
                characters += more.chars().count().max(1);
                text.push_str(&more);
            }
            vec![said(Role::User, text.trim_end().to_owned()), said(Role::Assistant, from(0).assistant.clone())]
        }
    }
}

fn render(message: &MessageSpec, item: &Item, passages: &[Passage]) -> Message {
    let mut pieces = Vec::new();
    for part in &message.parts {
        match part {
            PartSpec::Text(text) => {
                let span = (message.role == Role::System).then(|| "system".to_owned());
                pieces.push(Piece { span, text: text.clone() });
            }
            PartSpec::Question => pieces.push(Piece { span: Some("question".to_owned()), text: item.question.clone() }),
            PartSpec::Documents(documents) => {
                for (number, passage) in (1..).zip(passages) {
                    // The text goes in last: a document may itself hold `{n}`.
                    let text = documents.each.value.replace("{n}", &number.to_string()).replace("{text}", &passage.text);
                    pieces.push(Piece { span: Some(format!("document {number}")), text });
                    if !documents.after_each.is_empty() {
                        pieces.push(Piece { span: None, text: documents.after_each.clone() });
                    }
                }
            }
        }
    }
    Message { role: message.role, pieces }
}
