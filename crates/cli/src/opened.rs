//! A model as the user named it, opened, with all that commands need of it.

use std::io::Read as _;
use std::num::NonZeroUsize;

use glassbox_anatomy::Observer;
use glassbox_checkpoint::{Allowance, Checkpoint, HubCache, HubEnvironment, locate};
use glassbox_generate::Session;
use glassbox_mechanisms::cache::{KvType, Pool};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Activations, Blueprint, Encoder, Keeping, Model, ModelError, Rows, Windows};
use glassbox_record::{Digest, PromptSpan, TokenText};
use glassbox_server::Offer;
use glassbox_text::{ChatTemplate, Message, Piece, Prompt, RenderOptions, Specials, Tokenizer};

use crate::args::{ActivationChoice, KernelChoice, ModelChoice};
use crate::exit::Failure;
use crate::{clock, specimen, terminal};

/// Most bytes of a cache: beyond this a machine of the size that this is for would begin to swap.
const CACHE_LIMIT_BYTES: u64 = 8 << 30;

/// Most threads for each processor that the system gives us: enough to try any scheduling, few enough to start at once.
const MOST_THREADS_A_PROCESSOR: usize = 8;

/// An opened model.
pub(crate) struct Opened {
    /// As the user named it.
    pub(crate) name: String,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) engine: Engine,
    pub(crate) workers: Workers,
    /// Most bytes that a cache may take.
    pub(crate) memory_limit: u64,
    /// How it stores keys and values.
    pub(crate) kv_type: KvType,
    tokenizer: Result<Tokenizer, glassbox_text::Error>,
}

/// What a model does with tokens.
pub(crate) enum Engine {
    /// It continues them.
    Decoder(Model),
    /// It gives a vector for each.
    Encoder(Encoder),
}

/// A prompt as it goes into the model, and as it is shown.
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) tokens: Vec<TokenText>,
    pub(crate) spans: Vec<PromptSpan>,
}

/// The Hugging Face cache that the environment points to.
pub(crate) fn hub_cache() -> HubCache {
    HubCache::from_environment(&HubEnvironment::read(|name| std::env::var_os(name)))
}

/// The files of a model, read no further than their headers.
pub(crate) fn checkpoint(model: &str, allow_unread: &[String]) -> Result<Checkpoint, Failure> {
    let allowances = allow_unread.iter().map(|text| allowance(text)).collect::<Result<Vec<_>, _>>()?;
    let checkpoint = if model == specimen::NAME {
        specimen::open()
    } else {
        locate(model, &hub_cache()).and_then(|location| Checkpoint::open(location.path()))
    };
    Ok(checkpoint?.allow_unread(allowances))
}

/// All of standard input, as text.
pub(crate) fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(anyhow::Error::new(error).context("cannot read standard input")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        Failure::usage(anyhow::anyhow!("standard input: wanted UTF-8 text, found something else at byte {valid}"))
            .hint("convert the text first, as with `iconv -f GBK -t UTF-8`")
    })
}

/// As many threads as the user wants, within reason: far more than there are processors only wait for one another, for minutes and
/// longer, and no result depends on their number.
pub(crate) fn threads(wanted: Option<NonZeroUsize>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let most = MOST_THREADS_A_PROCESSOR * processors;
    match wanted.map(NonZeroUsize::get) {
        None => processors,
        Some(wanted) if wanted > most => {
            terminal::remark(&format!(
                "{wanted} threads on {processors} processors would only wait; {most} are used, with the same result"
            ));
            most
        }
        Some(wanted) => wanted,
    }
}

fn allowance(text: &str) -> Result<Allowance, Failure> {
    let parts = text.split_once('=').filter(|(key, reason)| !key.is_empty() && !reason.trim().is_empty());
    let (key, reason) = parts.ok_or_else(|| {
        Failure::usage(anyhow::anyhow!("--allow-unread wants KEY=REASON, found `{text}`"))
            .hint("say why the key is harmless; it goes into the run record")
    })?;
    Ok(Allowance { key: key.to_owned(), reason: reason.to_owned() })
}

impl Engine {
    fn open(
        checkpoint: &Checkpoint,
        choice: &ModelChoice,
        kernels: Kernels,
        activations: Activations,
        workers: &Workers,
    ) -> Result<Self, Failure> {
        if !Encoder::reads(checkpoint)? {
            return Ok(Self::Decoder(Model::open_with(checkpoint, kernels, activations, workers)?));
        }
        if choice.kv_type != KvType::F32 {
            let message = "an encoder keeps no keys and values for later: `--kv-type` says nothing to it; leave it out";
            return Err(Failure::usage(anyhow::anyhow!(message)));
        }
        Ok(Self::Encoder(Encoder::open(checkpoint, kernels)?))
    }
}

impl Opened {
    /// Opens the model that the user chose.
    pub(crate) fn open(choice: &ModelChoice) -> Result<Self, Failure> {
        let checkpoint = checkpoint(&choice.model, &choice.allow_unread)?;
        let kernels = match choice.kernels {
            KernelChoice::Fast => Kernels::Fast,
            KernelChoice::Textbook => Kernels::Textbook,
        };
        let activations = match choice.activations {
            ActivationChoice::Rounded => Activations::Rounded,
            ActivationChoice::Exact => Activations::Exact,
        };
        let workers = Workers::new(threads(choice.threads));
        // Large vocabularies take as long as the weights: both are read at once.
        let (engine, tokenizer) = std::thread::scope(|scope| {
            let tokenizer = scope.spawn(|| Tokenizer::open(&checkpoint));
            let engine = Engine::open(&checkpoint, choice, kernels, activations, &workers);
            (engine, tokenizer.join().expect("reading a tokenizer never panics"))
        });
        let engine = engine?;
        Ok(Self {
            name: choice.model.clone(),
            checkpoint,
            engine,
            workers,
            memory_limit: CACHE_LIMIT_BYTES,
            kv_type: choice.kv_type,
            tokenizer,
        })
    }

    /// The model as one that continues a text.
    pub(crate) fn decoder(&self) -> Result<&Model, Failure> {
        match &self.engine {
            Engine::Decoder(model) => Ok(model),
            Engine::Encoder(encoder) => {
                Err(ModelError::NoDecoder { family: encoder.blueprint().family, file: self.checkpoint.label().to_owned() }.into())
            }
        }
    }

    /// The model as one that gives vectors.
    pub(crate) fn encoder(&self) -> Result<&Encoder, Failure> {
        match &self.engine {
            Engine::Encoder(encoder) => Ok(encoder),
            Engine::Decoder(model) => {
                Err(ModelError::NoEncoder { family: model.blueprint().family, file: self.checkpoint.label().to_owned() }.into())
            }
        }
    }

    /// What the model is made of.
    pub(crate) fn blueprint(&self) -> &Blueprint {
        match &self.engine {
            Engine::Decoder(model) => model.blueprint(),
            Engine::Encoder(encoder) => encoder.blueprint(),
        }
    }

    /// Reads tokens watched. Gives the logits of the rows asked for, or an encoder's vectors of all tokens.
    pub(crate) fn watch(&self, ids: &[u32], rows: Rows, observer: &mut dyn Observer) -> Result<Vec<f32>, Failure> {
        match &self.engine {
            Engine::Encoder(encoder) => Ok(encoder.encode_observed(ids, None, &self.workers, observer)?.vectors),
            Engine::Decoder(model) => {
                let mut session = self.session(ids.len().max(1), Windows::Whole)?;
                Ok(session.prompt_observed(model, ids, rows, &self.workers, observer)?)
            }
        }
    }

    /// The model as a server offers it, as `name`, for prompts and answers of `context` tokens together.
    pub(crate) fn into_offer(self, name: String, context: usize) -> Result<Offer, Failure> {
        let label = self.checkpoint.label().to_owned();
        let model = match self.engine {
            Engine::Decoder(model) => model,
            Engine::Encoder(encoder) => return Err(ModelError::NoDecoder { family: encoder.blueprint().family, file: label }.into()),
        };
        let tokenizer = self.tokenizer?;
        let template = match ChatTemplate::open(&self.checkpoint, None) {
            Ok(template) => Some(template),
            Err(glassbox_text::Error::NoTemplate { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        tokenizer.check_fits(model.blueprint().vocab)?;
        let facts = [
            self.checkpoint.content_hash(),
            self.checkpoint.settings_hash()?,
            template.as_ref().map_or_else(String::new, |template| template.hash().to_owned()),
            format!("{:?} {:?} {} {context}", model.kernels(), model.activations(), self.kv_type),
        ];
        let fingerprint = format!("glassbox-{:.16}", Digest::of_bytes(facts.join("\n").as_bytes()).as_hex());
        Ok(Offer { name, model, tokenizer, template, workers: self.workers, fingerprint, kv_type: self.kv_type, context })
    }

    /// An empty session for up to `context` tokens.
    pub(crate) fn session(&self, context: usize, windows: Windows) -> Result<Session, Failure> {
        let keeping = Keeping { kv_type: self.kv_type, windows };
        Ok(Session::keeping(self.decoder()?, context, keeping, &Pool::new(self.memory_limit))?)
    }

    /// The tokenizer, or why there is none.
    pub(crate) fn tokenizer(&self) -> Result<&Tokenizer, Failure> {
        let missing = |error: &glassbox_text::Error| Failure::from(error.clone()).hint("`glassbox inspect --ids 1,5,9` needs no tokenizer");
        self.tokenizer.as_ref().map_err(missing)
    }

    /// Tokens at which an answer ends.
    pub(crate) fn end_ids(&self) -> Vec<u32> {
        self.tokenizer.as_ref().map_or_else(|_| Vec::new(), |tokenizer| tokenizer.end_ids().to_vec())
    }

    /// Tokens that the model was made for.
    pub(crate) fn made_for(&self) -> usize {
        self.blueprint().context
    }

    /// What to do where the context that the model was made for is too short.
    pub(crate) fn made_for_hint(&self) -> String {
        match self.engine {
            Engine::Decoder(_) => format!("the model was made for {} tokens; `--context` tries more", self.made_for()),
            Engine::Encoder(_) => "`glassbox embed` cuts a text that is too long, and says so".to_owned(),
        }
    }

    /// Turns a text (`-`: standard input) into tokens, as it is or as the message of a chat.
    pub(crate) fn read(&self, text: &str, chat: bool, system: Option<&str>) -> Result<Read, Failure> {
        let text = if text == "-" { standard_input()? } else { text.to_owned() };
        if let Engine::Encoder(_) = self.engine {
            if chat {
                return Err(Failure::usage(anyhow::anyhow!("an encoder holds no conversation; leave --chat out")));
            }
            let framed = self.tokenizer()?.encode_framed(&text, None, Specials::Parse, usize::MAX)?;
            return Ok(Read { tokens: self.token_texts(&framed.ids), spans: Vec::new(), text, ids: framed.ids });
        }
        let piece = if chat { Piece::named("user", text) } else { Piece::text(text) };
        self.read_pieces(vec![piece], chat, system)
    }

    /// As [`Opened::read`], of a text in pieces, of which some have names.
    pub(crate) fn read_pieces(&self, pieces: Vec<Piece>, chat: bool, system: Option<&str>) -> Result<Read, Failure> {
        let tokenizer = self.tokenizer()?;
        let prompt = if chat {
            let template = ChatTemplate::open(&self.checkpoint, None)
                .map_err(|error| Failure::from(error).hint("without --chat the text is continued as it is"))?;
            let mut messages: Vec<Message> = Vec::new();
            if let Some(system) = system {
                messages.push(Message::new("system", vec![Piece::named("system", system)]));
            }
            messages.push(Message::new("user", pieces));
            let options = RenderOptions { now: Some(clock::civil_now()), ..RenderOptions::default() };
            Prompt::chat(tokenizer, &template, &messages, &options)
        } else {
            Prompt::plain(tokenizer, &pieces, Specials::Parse)
        };
        let prompt = prompt?;
        if prompt.ids.is_empty() {
            return Err(Failure::usage(anyhow::anyhow!("the prompt is empty; wanted at least one token")));
        }
        let spans = prompt.spans.iter().map(|span| PromptSpan {
            name: span.name.clone(),
            first_token: span.tokens.start,
            tokens: span.tokens.len(),
        });
        Ok(Read { tokens: self.token_texts(&prompt.ids), spans: spans.collect(), text: prompt.text, ids: prompt.ids })
    }

    /// Takes token ids as they are.
    pub(crate) fn read_ids(&self, ids: &[u32]) -> Result<Read, Failure> {
        if let Ok(tokenizer) = &self.tokenizer {
            tokenizer.check_ids(ids)?;
        }
        Ok(Read { text: String::new(), ids: ids.to_vec(), tokens: self.token_texts(ids), spans: Vec::new() })
    }

    /// The text of one token.
    pub(crate) fn token_text(&self, id: u32) -> String {
        self.token_texts(&[id]).remove(0).text
    }

    /// Architecture and size in a few words.
    pub(crate) fn description(&self) -> String {
        let blueprint = self.blueprint();
        let heads = blueprint.attention.heads;
        format!(
            "{}, {} layers, d_model {}, {} heads over {} kv heads of {}, vocabulary {}",
            blueprint.family,
            blueprint.layers.len(),
            blueprint.d_model,
            heads.heads(),
            heads.kv_heads(),
            heads.d_head(),
            blueprint.vocab
        )
    }

    /// Whether every product is of the numbers as they are, and not of rounded activations.
    pub(crate) fn exact(&self) -> bool {
        match &self.engine {
            Engine::Decoder(model) => model.activations() == Activations::Exact,
            Engine::Encoder(_) => true,
        }
    }

    /// What computes the numbers that are shown: attention weights are computed again from the same keys, by the same steps.
    pub(crate) fn run_by(&self) -> String {
        match &self.engine {
            Engine::Decoder(model) => {
                format!("{} kernels, keys and values as {}", format!("{:?}", model.kernels()).to_lowercase(), self.kv_type)
            }
            Engine::Encoder(encoder) => format!("{} kernels", format!("{:?}", encoder.kernels()).to_lowercase()),
        }
    }

    fn token_texts(&self, ids: &[u32]) -> Vec<TokenText> {
        match &self.tokenizer {
            Ok(tokenizer) => tokenizer.token_texts(ids).into_iter().map(|token| TokenText { id: token.id, text: token.text }).collect(),
            Err(_) => ids.iter().map(|id| TokenText { id: *id, text: format!("#{id}") }).collect(),
        }
    }
}
