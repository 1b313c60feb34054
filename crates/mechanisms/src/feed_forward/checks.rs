use super::*;

#[test]
fn feed_forward_layers_of_the_seed_have_these_many_parameters() {
    assert_eq!(textbook::plain_parameters(512, 2048), 2_097_152);
    assert_eq!(textbook::gated_parameters(512, 1365), 2_096_640);
}
