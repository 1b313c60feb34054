//! `demo`: the built-in suite on the built-in model.

use glassbox_mechanisms::cache::KvType;

use crate::args::{ActivationChoice, Demo, KernelChoice, ModelChoice};
use crate::commands::test::{open_suite, run_suite};
use crate::opened::Opened;
use crate::{Outcome, specimen};

pub(crate) fn run(command: &Demo) -> Outcome {
    let choice = ModelChoice {
        model: specimen::NAME.to_owned(),
        threads: None,
        kernels: KernelChoice::Fast,
        activations: ActivationChoice::Rounded,
        kv_type: KvType::F32,
        allow_unread: Vec::new(),
    };
    run_suite(open_suite("evidence")?, Opened::open(&choice)?, &command.run)
}
