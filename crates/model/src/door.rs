//! What is checked before a pass, so that nothing fails inside it.

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_mechanisms::cache::{Cache, LayerShape};

use crate::ModelError;
use crate::blueprint::{AddedPositions, Blueprint, TokenTypes};
use crate::decoder::PIECE;

/// Turns away tokens that the model cannot read.
pub(crate) fn check(blueprint: &Blueprint, wanted: &[LayerShape], ids: &[u32], cache: &Cache) -> Result<(), ModelError> {
    check_ids(blueprint, ids, cache.len())?;
    let held: Vec<LayerShape> = (0..).map_while(|layer| cache.layer(layer).ok()).map(|layer| layer.shape()).collect();
    if held != wanted {
        return Err(ModelError::ForeignCache { wanted: describe(wanted), found: describe(&held) });
    }
    Ok(cache.room_for(ids.len())?)
}

/// Turns away a prefix that is not read whole, in one piece, from the first position on.
pub(crate) fn check_prefix(blueprint: &Blueprint, ids: &[u32], prefix: usize, cache: &Cache) -> Result<(), ModelError> {
    let windows = blueprint.layers.iter().any(|layer| layer.window.keys().is_some());
    let most = if windows { ids.len().min(PIECE) } else { ids.len() };
    if cache.is_empty() && prefix <= most { Ok(()) } else { Err(ModelError::Prefix { prefix, most, held: cache.len() }) }
}

/// Turns away token types that have no vector.
pub(crate) fn check_token_types(blueprint: &Blueprint, ids: &[u32], token_types: Option<&[u32]>) -> Result<(), ModelError> {
    let Some(given) = token_types else { return Ok(()) };
    let types = match blueprint.token_types {
        TokenTypes::None => 0,
        TokenTypes::Table { types } => types,
    };
    let known = given.iter().all(|given| usize::try_from(*given).is_ok_and(|given| given < types));
    if known && given.len() == ids.len() { Ok(()) } else { Err(ModelError::TokenTypes { tokens: ids.len(), given: given.len(), types }) }
}

/// Turns away ids that the model cannot read from position `first` on.
pub(crate) fn check_ids(blueprint: &Blueprint, ids: &[u32], first: usize) -> Result<(), ModelError> {
    if ids.is_empty() {
        return Err(ModelError::NoIds);
    }
    let vocab = blueprint.vocab;
    if let Some(at) = ids.iter().position(|id| usize::try_from(*id).map_or(true, |id| id >= vocab)) {
        return Err(ModelError::IdOutsideVocab { id: ids[at], position: first + at, vocab });
    }
    match blueprint.added_positions {
        AddedPositions::Learned { positions } if first + ids.len() > positions => {
            Err(ModelError::PastLearnedPositions { first, tokens: ids.len(), positions })
        }
        _ => Ok(()),
    }
}

/// The layers whose scores or weights the observer wants to change.
pub(crate) fn layers_with_edited_weights(blueprint: &Blueprint, observer: &dyn Observer, first_row: usize) -> Vec<usize> {
    let edits = |layer, site| observer.interest(At { layer, site, first_row }) == Interest::Edit;
    (0..blueprint.layers.len()).filter(|layer| edits(*layer, Site::Scores) || edits(*layer, Site::Pattern)).collect()
}

fn describe(layers: &[LayerShape]) -> String {
    match layers.first() {
        None => "no layers".to_owned(),
        Some(first) => format!("{} layers of {} kv heads of width {}", layers.len(), first.kv_heads, first.d_head),
    }
}
