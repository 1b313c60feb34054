//! The forward pass of each family, written out. The difference of two snapshots is the difference of two architectures.

use glassbox_mechanisms::Kernels;
use glassbox_model::explain;

use crate::tiny::{all, open};

#[test]
fn the_forward_pass_of_each_fixture_reads_as_before() {
    for name in all() {
        insta::assert_snapshot!(name.as_str(), explain(open(&name, Kernels::Fast).blueprint()));
    }
}
