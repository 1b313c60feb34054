//! How the items of a test are varied, held against what each type of test can do.

use std::collections::BTreeSet;

use crate::SuiteError;
use crate::schema::{Arm, DesignSpec, DistractorSource, Positions, TestKind, TestSpec, place_of};

/// Orders of a test at most: all of six documents.
const MOST_ORDERS: usize = 720;
/// Distances of a test at most: every one of them is a whole conversation for every item.
const MOST_DISTANCES: usize = 32;
/// Characters between telling and asking, all distances of an item together: some 250,000 tokens, beyond what a test of memory can want.
const MOST_CHARACTERS: usize = 1_000_000;

/// How items are varied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Design {
    /// k documents, one of them right, its place varied.
    EvidencePosition {
        /// How documents are chosen.
        documents: DocumentDesign,
        /// Places of the gold document, counted from 1, rising.
        positions: Vec<usize>,
        /// Arms beside the positions.
        arms: BTreeSet<Arm>,
    },
    /// The same documents in several orders.
    OrderSensitivity {
        /// How documents are chosen.
        documents: DocumentDesign,
        /// How many orders, identity and reverse included.
        orders: usize,
    },
    /// What was told, asked again after neutral turns or text.
    MemoryDecay {
        /// How documents are chosen.
        documents: DocumentDesign,
        /// What lies between, rising.
        distances: Vec<Distance>,
        /// Whether the question is asked without having been told too.
        untold: bool,
    },
    /// The same question in words that mean the same.
    MinimalRewrite {
        /// How documents are chosen.
        documents: DocumentDesign,
    },
    /// A document that says otherwise than what is known by heart, or than another document.
    FactConflict {
        /// How documents are chosen: the gold one and one that contradicts it.
        documents: DocumentDesign,
    },
}

/// What lies between telling and asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// So many turns.
    Turns(usize),
    /// So many characters, in one turn.
    Characters(usize),
}

impl Distance {
    /// In turns or characters.
    #[must_use]
    pub const fn steps(self) -> usize {
        match self {
            Self::Turns(steps) | Self::Characters(steps) => steps,
        }
    }
}

/// How the documents of a prompt are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentDesign {
    /// Documents, the gold one included.
    pub passages: usize,
    /// Where the others come from.
    pub source: DistractorSource,
    /// How many of the others contradict the gold one.
    pub contradictory: usize,
}

impl Design {
    /// Which kind of test this is.
    #[must_use]
    pub fn kind(&self) -> TestKind {
        match self {
            Self::EvidencePosition { .. } => TestKind::EvidencePosition,
            Self::OrderSensitivity { .. } => TestKind::OrderSensitivity,
            Self::MemoryDecay { .. } => TestKind::MemoryDecay,
            Self::FactConflict { .. } => TestKind::FactConflict,
            Self::MinimalRewrite { .. } => TestKind::MinimalRewrite,
        }
    }

    /// How its documents are chosen.
    #[must_use]
    pub fn documents(&self) -> DocumentDesign {
        match self {
            Self::EvidencePosition { documents, .. }
            | Self::OrderSensitivity { documents, .. }
            | Self::MemoryDecay { documents, .. }
            | Self::FactConflict { documents }
            | Self::MinimalRewrite { documents } => *documents,
        }
    }

    /// The design of a test, held against what its type can do.
    pub(crate) fn check(path: &str, spec: &TestSpec) -> Result<Self, SuiteError> {
        let design: &DesignSpec = &spec.design.value;
        let refused = |message: String| Err(SuiteError::refused(place_of(path, &spec.design), message));
        let documents = DocumentDesign { passages: design.passages, source: design.distractors, contradictory: design.contradictory };
        if design.contradictory >= design.passages {
            return refused(format!(
                "`contradictory` is {}, but beside the gold document there are only {}",
                design.contradictory,
                design.passages.saturating_sub(1)
            ));
        }
        if spec.kind != TestKind::MemoryDecay && (design.turns.is_some() || design.characters.is_some()) {
            return refused(format!("`turns` and `characters` belong to tests of type `memory_decay`; this one is `{}`", spec.kind.name()));
        }
        match spec.kind {
            TestKind::MinimalRewrite => {
                if design.arms.is_some() || design.positions.is_some() || design.orders.is_some() {
                    return refused("`arms`, `positions` and `orders` do not belong to tests of type `minimal_rewrite`".to_owned());
                }
                Ok(Self::MinimalRewrite { documents })
            }
            TestKind::FactConflict => {
                let arms = design.arms.is_some() || design.positions.is_some() || design.orders.is_some();
                if arms || (design.passages, design.contradictory) != (2, 1) {
                    return refused(
                        "a test of type `fact_conflict` has the design {passages: 2, contradictory: 1}, and nothing else".to_owned(),
                    );
                }
                Ok(Self::FactConflict { documents })
            }
            TestKind::MemoryDecay => {
                if design.positions.is_some() || design.orders.is_some() {
                    return refused("`positions` and `orders` do not belong to tests of type `memory_decay`".to_owned());
                }
                let distances: Vec<Distance> = match (&design.turns, &design.characters) {
                    (Some(turns), None) => turns.iter().copied().map(Distance::Turns).collect(),
                    (None, Some(characters)) => characters.iter().copied().map(Distance::Characters).collect(),
                    _ => {
                        return refused(
                            "a test of type `memory_decay` wants either `turns` or `characters`, such as `turns: [1, 5, 10, 20]`"
                                .to_owned(),
                        );
                    }
                };
                if distances.len() < 2 || distances.windows(2).any(|pair| pair[0].steps() >= pair[1].steps()) {
                    return refused("wanted at least two distances, each larger than the one before".to_owned());
                }
                if distances.len() > MOST_DISTANCES {
                    return refused(format!("wanted at most {MOST_DISTANCES} distances, found {}", distances.len()));
                }
                let characters = design.characters.iter().flatten().fold(0_usize, |sum, characters| sum.saturating_add(*characters));
                if characters > MOST_CHARACTERS {
                    return refused(format!("`characters` add up to {characters}; wanted at most {MOST_CHARACTERS}"));
                }
                let arms: BTreeSet<Arm> = design.arms.iter().flatten().copied().collect();
                if arms.iter().any(|arm| *arm != Arm::Closed) {
                    return refused("a test of type `memory_decay` has no arm but `closed`".to_owned());
                }
                Ok(Design::MemoryDecay { documents, distances, untold: arms.contains(&Arm::Closed) })
            }
            TestKind::EvidencePosition => {
                if design.orders.is_some() {
                    return refused("`orders` belongs to tests of type `order_sensitivity`; this one is `evidence_position`".to_owned());
                }
                let positions: Vec<usize> = match &design.positions {
                    None | Some(Positions::All) => (1..=design.passages).collect(),
                    Some(Positions::Only(places)) => places.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
                };
                if design.passages < 2 || positions.iter().any(|place| *place == 0 || *place > design.passages) || positions.is_empty() {
                    return refused(format!(
                        "wanted at least 2 `passages` and `positions` from 1 to {}, found {positions:?}",
                        design.passages
                    ));
                }
                let arms = design.arms.iter().flatten().copied().collect();
                Ok(Design::EvidencePosition { documents, positions, arms })
            }
            TestKind::OrderSensitivity => {
                if design.positions.is_some() || design.arms.is_some() {
                    return refused(
                        "`positions` and `arms` belong to tests of type `evidence_position`; this one is `order_sensitivity`".to_owned(),
                    );
                }
                let possible: usize = (1..=design.passages.min(12)).product::<usize>().min(MOST_ORDERS);
                let orders = design.orders.unwrap_or(possible.min(12));
                if design.passages < 2 || orders < 2 || orders > possible {
                    return refused(format!("{} documents have from 2 to {possible} orders, and `orders` is {orders}", design.passages));
                }
                Ok(Design::OrderSensitivity { documents, orders })
            }
        }
    }
}
