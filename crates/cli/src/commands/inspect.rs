//! `inspect`: one forward pass under observation.

use std::num::NonZeroUsize;
use std::path::Path;

use glassbox_anatomy::SitePattern;
use glassbox_lens::{AttentionStatistics, Capture, HeadMaps, HeadRef, HeadStatistics, NextTokens, Panel, choose_heads};
use glassbox_model::{Rows, Windows};
use glassbox_record::{HeadSummary, InspectedModel, Inspection, NextTokenRow, PooledMap};

use crate::args::Inspect;
use crate::commands::{evidence, layers};
use crate::exit::{Exit, Failure};
use crate::opened::{Engine, Opened, Read};
use crate::{Outcome, not_finite, output, terminal};

/// Cells along the edge of a drawn map; more than about two a pixel column would not be seen.
const MAX_EDGE: usize = 256;

pub(crate) fn run(command: &Inspect) -> Outcome {
    for path in [&command.html, &command.png, &command.svg, &command.out].into_iter().flatten() {
        output::check_folder(path)?;
    }
    let patterns = patterns(&command.site)?;
    let opened = Opened::open(&command.model)?;
    match (command.context, &opened.engine) {
        // A context that could never be had is refused, however short the prompt.
        (Some(context), Engine::Decoder(_)) => drop(opened.session(context.get(), Windows::Whole)?),
        (Some(context), Engine::Encoder(_)) if context.get() > opened.made_for() => {
            let message = format!("--context wants {context} tokens, and the model has positions for {}", opened.made_for());
            return Err(Failure::usage(anyhow::anyhow!(message)));
        }
        _ => {}
    }
    if !command.layers && !command.evidence && (command.answer.is_some() || command.against.is_some()) {
        return Err(Failure::usage(anyhow::anyhow!("--answer and --against say what --layers or --evidence looks at; give one of those")));
    }
    let prompt = match &command.text {
        Some(text) if command.evidence => evidence::read(command, &opened, text)?,
        Some(text) => opened.read(text, command.chat, command.system.as_deref())?,
        None => opened.read_ids(&command.ids)?,
    };
    let room = command.context.map_or(opened.made_for(), NonZeroUsize::get);
    let tokens = prompt.ids.len();
    if tokens > room {
        let failure =
            Failure::usage(anyhow::anyhow!("the prompt has {tokens} tokens, and the context has room for {room}; shorten the prompt"));
        return Err(if command.context.is_none() { failure.hint(opened.made_for_hint()) } else { failure });
    }
    if command.layers {
        return layers::run(command, &opened, &prompt).map(|()| Exit::Success);
    }
    if command.evidence {
        return evidence::run(command, &opened, &prompt).map(|()| Exit::Success);
    }
    if let Some(out) = &command.out {
        save_sites(command, patterns, out, &opened, &prompt)?;
    }
    let pictures = command.html.is_some() || command.png.is_some() || command.svg.is_some();
    if command.site.is_empty() || pictures || command.json {
        show(command, &opened, &prompt)?;
    }
    Ok(Exit::Success)
}

fn patterns(sites: &[String]) -> Result<Vec<SitePattern>, Failure> {
    let pattern = |text: &String| text.parse::<SitePattern>().map_err(|error| Failure::usage(error).hint("`glassbox sites` lists them"));
    sites.iter().map(pattern).collect()
}

fn save_sites(command: &Inspect, patterns: Vec<SitePattern>, out: &Path, opened: &Opened, prompt: &Read) -> Result<(), Failure> {
    let mut capture = Capture::new(patterns, command.out_limit_mib.saturating_mul(1 << 20));
    let numbers = opened.watch(&prompt.ids, Rows::All, &mut capture)?;
    output::write(out, &capture.safetensors().map_err(Failure::usage)?)?;
    if command.site.iter().any(|site| site == "*") && !command.site.iter().any(|site| site.starts_with("blocks.")) {
        terminal::remark("`*` chooses the sites outside the blocks; `*,blocks.*.*` chooses all");
    }
    // The file is written all the same: it is what one needs to find where such numbers come from.
    not_finite::check(opened, &prompt.ids, &numbers)
}

fn show(command: &Inspect, opened: &Opened, prompt: &Read) -> Result<(), Failure> {
    let inspection = inspect(command, opened, prompt)?;
    let lang = command.language.lang;
    if let Some(path) = &command.html {
        output::write(path, glassbox_report::inspection_html(&inspection, lang).map_err(Failure::internal)?.as_bytes())?;
    }
    if let Some(path) = &command.svg {
        output::write(path, glassbox_report::inspection_svg(&inspection).map_err(Failure::internal)?.as_bytes())?;
    }
    if let Some(path) = &command.png {
        let picture = glassbox_report::inspection_png(&inspection).map_err(Failure::internal)?;
        for warning in &picture.warnings {
            terminal::remark(&format!("warning: {warning}"));
        }
        output::write(path, &picture.png)?;
    }
    if command.json {
        terminal::print_json(&inspection)?;
    } else if command.html.is_none() && command.png.is_none() && command.svg.is_none() {
        terminal::print_lines(&glassbox_report::inspection_terminal(&inspection, lang, terminal::width()))?;
    }
    Ok(())
}

fn inspect(command: &Inspect, opened: &Opened, prompt: &Read) -> Result<Inspection, Failure> {
    let tokens = prompt.ids.len();
    let blueprint = opened.blueprint();
    let mut all_rows = AttentionStatistics::new(0..tokens, Vec::new());
    let ranges = prompt.spans.iter().map(|span| span.first_token..span.first_token + span.tokens).collect();
    let mut last_row = AttentionStatistics::new(tokens.saturating_sub(1)..tokens, ranges);
    let numbers = opened.watch(&prompt.ids, Rows::Last, &mut Panel::new(vec![&mut all_rows, &mut last_row]))?;
    not_finite::check(opened, &prompt.ids, &numbers)?;
    let heads = all_rows.finish();
    not_finite::check_heads(opened, &prompt.ids, &heads)?;
    let chosen = chosen_heads(command, &heads)?;
    let refs: Vec<HeadRef> = chosen.iter().map(|(head, _)| *head).collect();
    let mut maps = HeadMaps::new(&refs, tokens, MAX_EDGE);
    opened.watch(&prompt.ids, Rows::None, &mut maps)?;
    // An encoder gives vectors: no token comes next.
    let next = opened.decoder().ok().map(|_| NextTokens::of(&numbers, command.top));
    Ok(Inspection {
        format: Inspection::FORMAT.to_owned(),
        version: glassbox_record::FORMAT_VERSION,
        model: InspectedModel {
            name: opened.name.clone(),
            description: format!("{}; {}", opened.description(), opened.run_by()),
            layers: blueprint.layers.len(),
            heads: blueprint.attention.heads.heads(),
            kv_heads: blueprint.attention.heads.kv_heads(),
        },
        text: prompt.text.clone(),
        tokens: prompt.tokens.clone(),
        spans: prompt.spans.clone(),
        next: next
            .iter()
            .flat_map(|next| &next.top)
            .map(|token| NextTokenRow {
                id: token.id,
                text: opened.token_text(token.id),
                logit: token.logit,
                probability: token.log_probability.exp(),
            })
            .collect(),
        next_entropy_nats: next.as_ref().map(|next| next.entropy_nats),
        heads: heads.iter().zip(last_row.finish()).map(|(all, last)| summary(all, last)).collect(),
        maps: maps
            .finish()
            .into_iter()
            .zip(chosen)
            .map(|(map, (head, why))| PooledMap {
                layer: head.layer,
                head: head.head,
                why,
                cell_tokens: map.cell,
                edge: map.edge,
                weights: map.weights,
                last_row: map.last_row,
            })
            .collect(),
    })
}

fn summary(all: &HeadStatistics, last: HeadStatistics) -> HeadSummary {
    HeadSummary {
        layer: all.layer,
        head: all.head,
        normalised_entropy: all.normalised_entropy,
        sink_mass: all.sink_mass,
        mean_distance_tokens: all.mean_distance_tokens,
        last_row_span_mass: last.span_mass,
    }
}

/// The heads that the user named, or the most telling ones.
fn chosen_heads(command: &Inspect, heads: &[HeadStatistics]) -> Result<Vec<(HeadRef, String)>, Failure> {
    if command.heads.is_empty() {
        return Ok(choose_heads(heads, command.max_heads.get()));
    }
    let find = |text: &String| {
        let parts = text.split_once('.').and_then(|(layer, head)| Some((layer.parse().ok()?, head.parse().ok()?)));
        let head = parts.map(|(layer, head)| HeadRef { layer, head });
        let known = |head: &HeadRef| heads.iter().any(|known| (known.layer, known.head) == (head.layer, head.head));
        head.filter(known).map(|head| (head, "named on the command line".to_owned())).ok_or_else(|| {
            let last = heads.last().map_or_else(String::new, |last| format!("{}.{}", last.layer, last.head));
            Failure::usage(anyhow::anyhow!("the model has no head `{text}`; wanted layer.head from 0.0 to {last}"))
        })
    };
    let chosen = command.heads.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    match chosen.iter().enumerate().find(|(index, head)| chosen[..*index].contains(head)) {
        Some((_, (head, _))) => {
            Err(Failure::usage(anyhow::anyhow!("--heads names head {}.{} twice; wanted each once", head.layer, head.head)))
        }
        None => Ok(chosen),
    }
}
