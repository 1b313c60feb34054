//! What an answer came from: where attention went, what it carried to the answer's logit, and whether the answer needs it.

use std::ops::Range;

use glassbox_anatomy::Site;
use glassbox_generate::Session;
use glassbox_lens::{AttentionRows, HeadRef, Knockout, LastRow, NextTokens, Panel, ValueWeightedMass, uniform_mass, visible_keys};
use glassbox_mechanisms::Workers;
use glassbox_mechanisms::softmax::log_probability;
use glassbox_model::{LogitDirection, Model, ModelError, Rows};

const SITES: &[Site] = &[Site::EmbedOut, Site::Mixed, Site::AttnOut, Site::AttnAdded, Site::FfnAdded, Site::BlockOut];

/// By how much an answer's probability must fall, as a natural logarithm, before a span counts as needed for it though it stays the answer: to less
/// than half.
const HALVED_NATS: f64 = std::f64::consts::LN_2;

/// A named part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSpan {
    /// Its name.
    pub name: String,
    /// Its tokens, absolute positions.
    pub tokens: Range<usize>,
}

/// The token that the model would say after a prompt, or another one, and what it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The token whose logit is divided.
    pub answer: u32,
    /// Where given, parts are of the difference: the answer's logit less this one's.
    pub against: Option<u32>,
    /// What the parts make up: a logit before its soft-cap, or a difference of two.
    pub logit: f64,
    /// Natural logarithm of the answer's probability.
    pub log_probability: f64,
    /// What did not come through attention.
    pub memory: Memory,
    /// What came through attention from tokens in no span, that of the last token itself among it.
    pub elsewhere: f64,
    /// [layer, head] What each head added, from all tokens.
    pub heads: Vec<Vec<f64>>,
    /// The spans, in the order given.
    pub spans: Vec<SpanEvidence>,
    /// What all parts leave of the logit: rounding.
    pub rounding: f64,
}

/// Parts of a logit that no token brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// The embedding of the last token.
    pub embedding: f64,
    /// [layer] The feed-forward parts: what the weights know, given what was read.
    pub feed_forward: Vec<f64>,
    /// Biases of attention and of the last norm.
    pub bias: f64,
}

/// What one span did for the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvidence {
    /// Which.
    pub span: NamedSpan,
    /// Share of the last token's attention, mean over all heads of all layers; 0 to 1.
    pub mass: f64,
    /// That share over the one that the span would get if every visible key got the same. `None` where the last token sees none of it.
    pub lift: Option<f64>,
    /// As `mass`, each key weighted by the norm of what its value adds.
    pub value_weighted: f64,
    /// What its tokens added to the logit through attention to them, over all heads of all layers.
    pub ledger: f64,
    /// [layer, head] The same by head.
    pub by_head: Vec<Vec<f64>>,
    /// The answer when no later token can read the span, in any layer. `None` where no token comes later.
    pub knockout: Option<Effect>,
    /// The answer when the span is not in the prompt. `None` where nothing else is.
    pub deletion: Option<Effect>,
}

/// What an intervention does to the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The likeliest token afterwards.
    pub says: u32,
    /// Whether another token was likeliest before.
    pub changed: bool,
    /// Natural logarithm of the probability of the token asked about, afterwards.
    pub log_probability: f64,
    /// How far that fell; below 0 where it rose. Nats.
    pub fall_nats: f64,
}

/// What a method says of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// The answer came from here.
    Yes,
    /// It did not, or from elsewhere more.
    No,
    /// The method has nothing to go by.
    Nothing,
}

/// What the methods say of one span, and whether they agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// No other span has more attention.
    pub mass: Says,
    /// No other span has more attention for its length.
    pub lift: Says,
    /// From no other span attention carried more.
    pub value_weighted: Says,
    /// No other span pushed the logit more, and it pushed it up.
    pub ledger: Says,
    /// Without reading it the answer changes, or its probability falls to less than half.
    pub knockout: Says,
    /// The same without the span in the prompt.
    pub deletion: Says,
}

impl Claim {
    /// All six, in the order of the fields.
    #[must_use]
    pub fn all(&self) -> [Says; 6] {
        [self.mass, self.lift, self.value_weighted, self.ledger, self.knockout, self.deletion]
    }

    /// Whether all methods that have something to go by say the same.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let mut said = self.all().into_iter().filter(|says| *says != Says::Nothing);
        said.next().is_none_or(|first| said.all(|other| other == first))
    }
}

impl Effect {
    fn needed(self) -> bool {
        self.changed || self.fall_nats > HALVED_NATS
    }
}

impl Evidence {
    /// Weighs the spans of `prompt` for the token that follows it.
    ///
    /// - `session`  with room for the prompt; holds it afterwards
    /// - `answer`   the token asked about; the likeliest where `None`
    /// - `against`  another, for parts of the difference
    ///
    /// The prompt is read once. Each span then costs what comes behind it, twice: the beginning is shared.
    ///
    /// # Errors
    ///
    /// Those of the forward pass; a token that is not in the vocabulary; a family whose norms change the stream between blocks.
    ///
    /// # Panics
    ///
    /// Where the prompt is empty, a span goes beyond it, or two overlap.
    pub fn weigh(
        model: &Model,
        workers: &Workers,
        session: &mut Session,
        prompt: &[u32],
        spans: &[NamedSpan],
        answer: Option<u32>,
        against: Option<u32>,
    ) -> Result<Self, ModelError> {
        let last = prompt.len().checked_sub(1).expect("a prompt has a token");
        let mut taken = vec![false; prompt.len()];
        for key in spans.iter().flat_map(|span| span.tokens.clone()) {
            assert!(!std::mem::replace(&mut taken[key], true), "spans do not overlap");
        }
        let blueprint = model.blueprint();
        let (layers, heads) = (blueprint.layers.len(), blueprint.attention.heads.heads());
        let ranges: Vec<Range<usize>> = spans.iter().map(|span| span.tokens.clone()).collect();
        let all: Vec<HeadRef> = (0..layers).flat_map(|layer| (0..heads).map(move |head| HeadRef { layer, head })).collect();

        let (mut rows, mut attention) = (LastRow::new(SITES), AttentionRows::new(last..last + 1, &all));
        let mut carried = ValueWeightedMass::new(last, ranges.clone());
        session.keep_shared(prompt);
        let unread = &prompt[session.ids().len()..];
        let logits =
            session.push_observed(model, unread, Rows::Last, workers, &mut Panel::new(vec![&mut rows, &mut attention, &mut carried]))?;
        let row = |site, layer| rows.row(site, layer).expect("every block has every site");
        let attention = attention.finish();

        let said = NextTokens::of(&logits, 1).top[0].id;
        let answer = answer.unwrap_or(said);
        let stream = row(Site::BlockOut, layers - 1);
        let (direction, logit) = model.answer_direction(stream, &logits, answer, against)?;
        let before = log_probability(&logits, answer).unwrap_or(f64::NEG_INFINITY);

        let mut evidence = Self {
            answer,
            against,
            logit,
            log_probability: before,
            memory: memory(model, &rows, &direction),
            elsewhere: 0.0,
            heads: Vec::new(),
            spans: Vec::new(),
            rounding: 0.0,
        };
        let mut by_head = vec![vec![vec![0.0; heads]; layers]; spans.len()];
        let mut mass = vec![0.0; spans.len()];
        for layer in 0..layers {
            let parts = model.key_parts(layer, session.cache(), row(Site::AttnOut, layer), &direction, workers)?;
            let mut of_heads = Vec::with_capacity(heads);
            for head in 0..heads {
                let weights = &attention[&HeadRef { layer, head }][0].1;
                let part = |key: usize| f64::from(weights[key]) * f64::from(parts[head * prompt.len() + key]);
                of_heads.push((0..=last).map(part).sum());
                for (span, keys) in ranges.iter().enumerate() {
                    by_head[span][layer][head] = keys.clone().map(part).sum();
                    mass[span] += keys.clone().map(|key| f64::from(weights[key])).sum::<f64>() / (layers * heads) as f64;
                }
            }
            evidence.heads.push(of_heads);
        }
        let carried = carried.finish();
        for (index, span) in spans.iter().enumerate() {
            let uniform = (0..layers).map(|layer| {
                let visible = visible_keys(last, blueprint.layers[layer].window.keys());
                uniform_mass(&span.tokens, &visible) / layers as f64
            });
            let uniform: f64 = uniform.sum();
            let effect = |logits: &[f32]| {
                let log_probability = log_probability(logits, answer).unwrap_or(f64::NEG_INFINITY);
                let says = NextTokens::of(logits, 1).top[0].id;
                Effect { says, changed: says != said, log_probability, fall_nats: before - log_probability }
            };
            evidence.spans.push(SpanEvidence {
                span: span.clone(),
                mass: mass[index],
                lift: (uniform > 0.0).then(|| mass[index] / uniform),
                value_weighted: carried[index],
                ledger: by_head[index].iter().flatten().sum(),
                by_head: std::mem::take(&mut by_head[index]),
                knockout: knocked_out(model, workers, session, prompt, &span.tokens)?.map(|logits| effect(&logits)),
                deletion: without(model, workers, session, prompt, &span.tokens)?.map(|logits| effect(&logits)),
            });
        }
        let through_attention: f64 = evidence.heads.iter().flatten().sum();
        let in_spans: f64 = evidence.spans.iter().map(|span| span.ledger).sum();
        let Memory { embedding, feed_forward, bias } = &evidence.memory;
        evidence.elsewhere = through_attention - in_spans;
        evidence.rounding = logit - through_attention - embedding - bias - feed_forward.iter().sum::<f64>();
        Ok(evidence)
    }

    /// What the methods say of each span, in their order. The four that compare spans have nothing to go by where there is one.
    #[must_use]
    pub fn claims(&self) -> Vec<Claim> {
        let first = |number: &dyn Fn(&SpanEvidence) -> Option<f64>| -> Vec<Says> {
            let most = self.spans.iter().filter_map(number).fold(f64::NEG_INFINITY, f64::max);
            let says = |span: &SpanEvidence| match number(span) {
                Some(number) if self.spans.len() > 1 => {
                    if number >= most && number > 0.0 {
                        Says::Yes
                    } else {
                        Says::No
                    }
                }
                // Of one span nothing can be said by comparing.
                _ => Says::Nothing,
            };
            self.spans.iter().map(says).collect()
        };
        let needed = |effect: Option<Effect>| effect.map_or(Says::Nothing, |effect| if effect.needed() { Says::Yes } else { Says::No });
        let mass = first(&|span| Some(span.mass));
        let lift = first(&|span| span.lift);
        let value_weighted = first(&|span| Some(span.value_weighted));
        let ledger = first(&|span| Some(span.ledger));
        let claim = |(index, span): (usize, &SpanEvidence)| Claim {
            mass: mass[index],
            lift: lift[index],
            value_weighted: value_weighted[index],
            ledger: ledger[index],
            knockout: needed(span.knockout),
            deletion: needed(span.deletion),
        };
        self.spans.iter().enumerate().map(claim).collect()
    }
}

fn memory(model: &Model, rows: &LastRow, direction: &LogitDirection) -> Memory {
    let row = |site, layer| rows.row(site, layer).expect("every block has every site");
    let layers = 0..model.blueprint().layers.len();
    let biases = layers.clone().map(|layer| model.head_parts(layer, row(Site::Mixed, layer), row(Site::AttnOut, layer), direction).bias);
    Memory {
        embedding: direction.of(row(Site::EmbedOut, 0)),
        bias: direction.constant() + biases.sum::<f64>(),
        feed_forward: layers.map(|layer| direction.of(row(Site::FfnAdded, layer))).collect(),
    }
}

/// The logits after the prompt when no token behind `keys` can read them. What comes before stays as it was, and is shared.
fn knocked_out(
    model: &Model,
    workers: &Workers,
    session: &Session,
    prompt: &[u32],
    keys: &Range<usize>,
) -> Result<Option<Vec<f32>>, ModelError> {
    if keys.end >= prompt.len() {
        return Ok(None);
    }
    let mut fork = session.fork();
    fork.truncate(keys.end);
    let held = fork.ids().len();
    let mut knockout = Knockout::from_all_later(keys.clone());
    fork.push_observed(model, &prompt[held..], Rows::Last, workers, &mut knockout).map(Some)
}

/// The logits after the prompt without the tokens of `keys`.
fn without(
    model: &Model,
    workers: &Workers,
    session: &Session,
    prompt: &[u32],
    keys: &Range<usize>,
) -> Result<Option<Vec<f32>>, ModelError> {
    let rest = [&prompt[..keys.start], &prompt[keys.end..]].concat();
    if rest.is_empty() {
        return Ok(None);
    }
    session.fork().prompt(model, &rest, workers).map(Some)
}
