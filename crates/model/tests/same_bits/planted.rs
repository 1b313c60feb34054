//! Engines whose logits depend on what they must not depend on: the checker must find each, by the way that shows it. Faults of single
//! kernels are planted inside the forward pass, by the unit tests of this crate (`src/planted`).

use glassbox_mechanisms::cache::{Cache, KvType};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Sequence};
use glassbox_tensor::StorageType;

use crate::checker::{Checker, Engine};
use crate::formats::model_of;

/// On what the last bit of one logit depends.
#[derive(Clone, Copy, Debug)]
enum DependsOn {
    /// Nothing: the model as it is.
    Nothing,
    /// A batch that is padded, or reduced together.
    Company,
    /// Stored keys that are not the computed ones.
    WhatIsCached,
    /// A slower path for observers.
    Watching,
}

struct Planted {
    model: Model,
    fault: DependsOn,
}

impl Planted {
    fn spoil(logits: &mut [f32]) {
        if let Some(last) = logits.last_mut() {
            *last = f32::from_bits(last.to_bits() ^ 1);
        }
    }
}

impl Engine for Planted {
    fn model(&self) -> &Model {
        &self.model
    }

    fn read(&self, sequences: &mut [Sequence<'_>], workers: &Workers) -> Vec<Vec<f32>> {
        let cached: Vec<usize> = sequences.iter().map(|sequence| sequence.cache.len()).collect();
        let mut logits = self.model.forward_together(sequences, workers).expect("sound ids");
        for (logits, before) in logits.iter_mut().zip(&cached) {
            let spoilt = match self.fault {
                DependsOn::Nothing | DependsOn::Watching => false,
                DependsOn::Company => cached.len() > 1,
                DependsOn::WhatIsCached => *before == 700,
            };
            if spoilt {
                Self::spoil(logits);
            }
        }
        logits
    }

    fn read_watched(&self, ids: &[u32], cache: &mut Cache, workers: &Workers) -> Vec<f32> {
        let mut logits = self.model.read_watched(ids, cache, workers);
        if matches!(self.fault, DependsOn::Watching) {
            Self::spoil(&mut logits);
        }
        logits
    }
}

#[test]
fn a_planted_dependence_on_company_cache_or_watching_fails_the_checker() {
    for (fault, shown_by) in
        [(DependsOn::Nothing, ""), (DependsOn::Company, "batch"), (DependsOn::WhatIsCached, "cache"), (DependsOn::Watching, "watched")]
    {
        let planted = Planted { model: model_of(StorageType::Q8_0, Kernels::Fast), fault };
        match (Checker::new(&planted, KvType::F32).all(), shown_by) {
            (Ok(()), "") => {}
            (Err(difference), shown_by) if !shown_by.is_empty() && difference.contains(shown_by) => {}
            (found, _) => panic!("{fault:?}: {found:?}"),
        }
    }
}
