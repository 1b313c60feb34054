use crate::{HeadRef, HeadStatistics};

/// Chooses at most `count` heads worth looking at, in the order of the model, each with the reason in words.
///
/// Where every head fits, all are shown. Otherwise a head's worth is the attention that it keeps for tokens other than
/// the first, times how selective it is (`1 - normalised entropy`): heads that rest on the first token or look at
/// everything alike tell little about a prompt. The most telling head of each layer comes first, then the rest by worth.
#[must_use]
pub fn choose_heads(heads: &[HeadStatistics], count: usize) -> Vec<(HeadRef, String)> {
    // With one token there is no entropy, and no head is more selective than another.
    let selectivity = |head: &HeadStatistics| 1.0 - head.normalised_entropy.unwrap_or(1.0);
    let worth = |head: &HeadStatistics| (1.0 - head.sink_mass) * selectivity(head);
    let place = |head: &HeadStatistics| HeadRef { layer: head.layer, head: head.head };
    if heads.len() <= count {
        return heads.iter().map(|head| (place(head), "every head of the model is shown".to_owned())).collect();
    }
    let mut order: Vec<&HeadStatistics> = heads.iter().collect();
    order.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(place(a).cmp(&place(b))));
    let mut seen_layers = Vec::new();
    let (first_of_layer, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(|head| {
        let new = !seen_layers.contains(&head.layer);
        seen_layers.push(head.layer);
        new
    });
    let mut chosen: Vec<(HeadRef, String)> = first_of_layer
        .into_iter()
        .map(|head| (head, "the most telling head of its layer"))
        .chain(rest.into_iter().map(|head| (head, "among the most telling heads of the model")))
        .take(count)
        .map(|(head, why)| {
            let kept = 100.0 * (1.0 - head.sink_mass);
            let selective = 100.0 * selectivity(head);
            (place(head), format!("{why}: {kept:.0} % of its attention is not on the first token, and it is {selective:.0} % selective"))
        })
        .collect();
    chosen.sort();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(layer: usize, head: usize, sink_mass: f64, normalised_entropy: f64) -> HeadStatistics {
        HeadStatistics {
            layer,
            head,
            span_mass: Vec::new(),
            entropy_nats: 0.0,
            normalised_entropy: Some(normalised_entropy),
            effective_support: 1.0,
            mean_distance_tokens: 0.0,
            sink_mass,
        }
    }

    #[test]
    fn every_layer_shows_its_most_telling_head_before_any_shows_two() {
        let heads = [head(0, 0, 0.1, 0.1), head(0, 1, 0.2, 0.1), head(1, 0, 0.9, 0.5), head(1, 1, 0.9, 0.9)];
        let chosen: Vec<HeadRef> = choose_heads(&heads, 2).into_iter().map(|(head, _)| head).collect();
        assert_eq!(chosen, [HeadRef { layer: 0, head: 0 }, HeadRef { layer: 1, head: 0 }]);
    }

    #[test]
    fn a_model_that_fits_is_shown_whole() {
        let heads = [head(0, 0, 0.1, 0.1), head(0, 1, 0.2, 0.1)];
        assert_eq!(choose_heads(&heads, 2).len(), 2);
    }
}
