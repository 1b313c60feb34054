//! What a user may type. The help in other languages is in `help.rs`.

mod bench;
mod endpoint;
mod score;
mod serve;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use glassbox_mechanisms::cache::KvType;
use glassbox_quantize::Target;
use glassbox_report::Lang;

pub(crate) use self::bench::{Bench, BenchOther, CaptureChoice, Growth};
pub(crate) use self::endpoint::{ApiChoice, EndpointChoice};
pub(crate) use self::score::Score;
pub(crate) use self::serve::Serve;

/// Open the box: run, watch, test and explain language models on a CPU
#[derive(Parser, Debug)]
#[command(name = "glassbox", version, max_term_width = 100, after_long_help = MAIN_EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const MAIN_EXAMPLES: &str = "\
Start here:
  glassbox demo                                try it: verdicts and a report in a minute
  glassbox inspect \"a text\" --html look.html   what the model looks at, as a page
  glassbox test evidence -m model.gguf         does your model find the right document?

Exit codes:
    0  no gate failed
  100  a gate failed
  101  no gate failed, but one was INCONCLUSIVE or CANNOT-SAY, under --strict
  102  more trials failed than the suite allows
    4  nothing was selected
    2  usage, configuration, or an input that cannot be read
    1  a fault of the program or the disk
  130  interrupted; `--resume last` goes on";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Continue a text, or answer as a chat
    Generate(Generate),
    /// Show what happens inside: tokens, next tokens, attention, entropy; or save activations
    Inspect(Inspect),
    /// Say how probable given texts are, each token after those before it
    Score(Score),
    /// Give the vectors of texts from an encoder, and how alike they are
    Embed(Embed),
    /// Run a suite against a model and give verdicts
    #[command(visible_alias = "eval")]
    Test(Test),
    /// Serve a model to clients of the OpenAI interface
    Serve(Serve),
    /// Run the built-in suite on the built-in model
    Demo(Demo),
    /// Make the reports of a finished run again, without the model
    Report(Report),
    /// What models there are, what is in one, and how to get one
    #[command(subcommand)]
    Models(Models),
    /// Write a model again as GGUF, in another storage type
    Quantize(Quantize),
    /// Measure speed and memory, in the figures of llama-bench
    Bench(Bench),
    /// Print the forward pass of a model, with its sizes
    Explain(Explain),
    /// List the watchable sites
    Sites,
    /// Print the JSON schema of a suite file, for editors
    Schema,
    /// Print completions for a shell
    #[command(after_long_help = "Example:\n  glassbox completions bash > ~/.local/share/bash-completion/completions/glassbox")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Which model, and how it runs.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ModelChoice {
    /// A .gguf file, a Hugging Face folder, org/name[@revision][:QUANT] in the Hugging Face cache, or `specimen`
    #[arg(short, long, value_name = "MODEL", env = "GLASSBOX_MODEL", default_value = "specimen")]
    pub(crate) model: String,
    /// Threads; by default as many as the machine has cores
    #[arg(short, long, value_name = "N", env = "GLASSBOX_THREADS", value_parser = at_least_one)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Which version of every mechanism runs: `textbook` is the definitions in double precision, slow
    #[arg(long, value_name = "KERNELS", default_value = "fast")]
    pub(crate) kernels: KernelChoice,
    /// What meets quantised weights: `rounded` activations are bytes, fast, as in llama.cpp; `exact` ones stay as they are
    #[arg(long, value_name = "ACTIVATIONS", default_value = "rounded")]
    pub(crate) activations: ActivationChoice,
    /// How the cache stores keys and values: smaller types save memory and round
    #[arg(long, value_name = "TYPE", default_value = KvType::F32.name(), value_parser = kv_type())]
    pub(crate) kv_type: KvType,
    /// Accept a configuration key that nothing reads, with the reason why it is harmless
    #[arg(long, value_name = "KEY=REASON")]
    pub(crate) allow_unread: Vec<String>,
}

impl ModelChoice {
    /// The same with the model that was named without `-m`, if one was.
    pub(crate) fn or_named(&self, named: Option<&str>) -> Self {
        Self { model: named.unwrap_or(&self.model).to_owned(), ..self.clone() }
    }
}

/// The kernel sets by name.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelChoice {
    Fast,
    Textbook,
}

/// How activations meet quantised weights, by name.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActivationChoice {
    Rounded,
    Exact,
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox generate --chat \"What is the capital of Koronia?\"    a place that the built-in model knows
  glassbox generate -m model.gguf --chat --system \"Be brief.\" \"Why is the sky blue?\"
  glassbox generate -m model.gguf --temperature 0.8 --top-p 0.95 --seed 7 \"Once upon a time\"
  cat notes.txt | glassbox generate - --stop \"###\" --json")]
pub(crate) struct Generate {
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    /// The text to continue; `-` reads standard input
    pub(crate) text: String,
    /// Ask as a chat, with the model's own template
    #[arg(long)]
    pub(crate) chat: bool,
    /// System message of the chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub(crate) system: Option<String>,
    /// Most tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value_t = 256, alias = "predict", value_parser = whole::<usize>)]
    pub(crate) max_tokens: usize,
    /// Divides the logits; 0 always takes the most probable token
    #[arg(long, allow_hyphen_values = true, value_name = "T", default_value_t = 0.0, alias = "temp")]
    pub(crate) temperature: f32,
    /// Keep the K most probable tokens; by default all
    #[arg(long, value_name = "K", value_parser = whole::<usize>)]
    pub(crate) top_k: Option<usize>,
    /// Keep the most probable tokens that together reach P
    #[arg(long, allow_hyphen_values = true, value_name = "P", default_value_t = 1.0)]
    pub(crate) top_p: f32,
    /// Drop tokens less probable than P times the most probable
    #[arg(long, allow_hyphen_values = true, value_name = "P", default_value_t = 0.0)]
    pub(crate) min_p: f32,
    /// Penalty on tokens that occurred already; 1 is off
    #[arg(long, allow_hyphen_values = true, value_name = "R", default_value_t = 1.0, alias = "repeat-penalty")]
    pub(crate) repetition_penalty: f32,
    /// Seed of the random numbers: the same seed gives the same text
    #[arg(short, long, value_name = "SEED", default_value_t = 0, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Text at which the answer ends; may be given more than once
    #[arg(long, value_name = "TEXT", value_parser = stop_text)]
    pub(crate) stop: Vec<String>,
    /// Go on past the end of the model's turn
    #[arg(long, alias = "ignore-eos")]
    pub(crate) ignore_end: bool,
    /// Room for prompt and answer; by default what they need, at most what the model was made for
    #[arg(short, long, value_name = "TOKENS", alias = "ctx-size", value_parser = at_least_one)]
    pub(crate) context: Option<NonZeroUsize>,
    /// One JSON document instead of the text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox embed folder \"a cat\" \"a kitten\" \"an invoice\"     how alike three texts are
  glassbox embed org/name \"a text\" --json | jq .embeddings[0].vector
  glassbox embed model.gguf - < lines.txt                     one text a line

How one vector is made of all tokens' vectors is read from the model's own files (modules.json, or the pooling of a GGUF file).")]
pub(crate) struct Embed {
    /// The encoder: a Hugging Face folder, a .gguf file, or org/name in the Hugging Face cache
    pub(crate) model: String,
    /// The texts; `-` alone reads standard input, one text a line
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) texts: Vec<String>,
    /// Threads; by default as many as the machine has cores
    #[arg(short, long, value_name = "N", env = "GLASSBOX_THREADS", value_parser = at_least_one)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Which version of every mechanism runs: `textbook` is the definitions in double precision, slow
    #[arg(long, value_name = "KERNELS", default_value = "fast")]
    pub(crate) kernels: KernelChoice,
    /// Accept a configuration key that nothing reads, with the reason why it is harmless
    #[arg(long, value_name = "KEY=REASON")]
    pub(crate) allow_unread: Vec<String>,
    /// One JSON document: the vectors with all their numbers, tokens, and the matrix of similarities
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox inspect \"a text\"                               tokens, next tokens and entropy in the terminal
  glassbox inspect -m model.gguf \"a text\" --html look.html --heads 3.5,4.0
  glassbox inspect -m folder --ids 1,5,9 --json | jq .next
  glassbox inspect \"The capital of France is\" --layers --answer \" Paris\" --against \" Rome\"
  glassbox inspect \"a text\" --site 'logits,blocks.*.attn.pattern' --out acts.safetensors")]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    /// The prompt; `-` reads standard input
    #[arg(required_unless_present = "ids")]
    pub(crate) text: Option<String>,
    /// Token ids instead of a text, as in 1,5,9; needs no tokenizer
    #[arg(long, value_name = "IDS", value_delimiter = ',', allow_hyphen_values = true, conflicts_with = "text", value_parser = token_id)]
    pub(crate) ids: Vec<u32>,
    /// Render the text as a chat, with the model's own template
    #[arg(long, conflicts_with = "ids")]
    pub(crate) chat: bool,
    /// System message of the chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub(crate) system: Option<String>,
    /// Most tokens of the prompt; by default what the model was made for
    #[arg(short, long, value_name = "TOKENS", alias = "ctx-size", value_parser = at_least_one)]
    pub(crate) context: Option<NonZeroUsize>,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a picture of the attention maps
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// Write the same picture as vectors
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Sites to save, as in logits,blocks.*.attn.pattern (`glassbox sites` lists them)
    #[arg(long, value_name = "SITES", value_delimiter = ',', requires = "out")]
    pub(crate) site: Vec<String>,
    /// Where to save the sites, as safetensors
    #[arg(long, value_name = "FILE", requires = "site")]
    pub(crate) out: Option<PathBuf>,
    /// Refuse to save more than this many MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = whole::<u64>)]
    pub(crate) out_limit_mib: u64,
    /// What each layer would answer after the last token, and what each part of the model adds to that answer
    #[arg(long, conflicts_with_all = ["html", "png", "svg", "site", "heads"])]
    pub(crate) layers: bool,
    /// What the answer came from: for each part of the prompt its attention, what that added to the answer, and whether the answer needs it
    #[arg(long, conflicts_with_all = ["html", "png", "svg", "site", "heads", "layers", "ids"])]
    pub(crate) evidence: bool,
    /// A part of the prompt, word for word and once in it, as TEXT or NAME=TEXT; without any, every line is one
    #[arg(long, value_name = "TEXT", requires = "evidence")]
    pub(crate) span: Vec<String>,
    /// With --layers or --evidence: the answer to look at; by default what the model answers
    #[arg(long, value_name = "TEXT")]
    pub(crate) answer: Option<String>,
    /// With --layers or --evidence: another answer; parts are shown of the difference
    #[arg(long, value_name = "TEXT")]
    pub(crate) against: Option<String>,
    /// Next tokens to list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>)]
    pub(crate) top: usize,
    /// Heads to draw, as in 3.5,4.0 (layer.head); by default the most telling ones
    #[arg(long, value_name = "HEADS", value_delimiter = ',')]
    pub(crate) heads: Vec<String>,
    /// Most heads to draw
    #[arg(long, value_name = "N", default_value = "12", conflicts_with = "heads", value_parser = at_least_one)]
    pub(crate) max_heads: NonZeroUsize,
    #[command(flatten)]
    pub(crate) language: LanguageChoice,
}

/// In which language a person reads the result.
#[derive(clap::Args, Debug, Clone, Copy)]
pub(crate) struct LanguageChoice {
    /// Language of pages and summaries: en or zh-CN
    #[arg(long, value_name = "LANG", default_value = "en", env = "GLASSBOX_LANG", value_parser = language)]
    pub(crate) lang: Lang,
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox test evidence                          a built-in suite on the built-in model
  glassbox test suites/evidence.yaml -m model.gguf -n 40
  glassbox test evidence -m model.gguf --resume last
  glassbox test evidence -m http://127.0.0.1:8080/v1#model -j 4    any OpenAI-compatible endpoint
  glassbox test evidence -m recorded:last         judge the answers of a run again
  glassbox test evidence --strict --quiet         for CI: the exit code says it

Exit codes:
    0  no gate failed
  100  a gate failed
  101  no gate failed, but one was INCONCLUSIVE or CANNOT-SAY, under --strict
  102  more trials failed than the suite allows
    4  nothing was selected
    2  usage, configuration, or an input that cannot be read
    1  a fault of the program or the disk
  130  interrupted; `--resume last` goes on")]
pub(crate) struct Test {
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    /// The suite file, or the name of a built-in suite: evidence, order, rewrite, memory, length, conflict
    pub(crate) suite: String,
    #[command(flatten)]
    pub(crate) run: RunChoice,
    #[command(flatten)]
    pub(crate) endpoint: EndpointChoice,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) run: RunChoice,
}

/// How a suite runs and where it writes.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct RunChoice {
    /// Folder of the runs
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Go on with an interrupted run, given by its folder or name; `last` is the newest
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Use at most this many items of every test; by default as many as the suite says
    #[arg(short = 'n', long, value_name = "N", value_parser = whole::<usize>)]
    pub(crate) limit: Option<usize>,
    /// Inconclusive gates end with exit code 101
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) language: LanguageChoice,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no table: only the path of the report
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "Example:\n  glassbox report last --lang zh-CN")]
pub(crate) struct Report {
    /// Folder or name of the run; `last` is the newest
    pub(crate) run: String,
    /// Folder of the runs
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub(crate) runs: PathBuf,
    #[command(flatten)]
    pub(crate) language: LanguageChoice,
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox quantize folder --to q8_0 -o model-q8_0.gguf
  glassbox quantize model.gguf --to q4_k -o model-q4_k.gguf --json | jq .types
  glassbox quantize specimen --to int4-per-channel -o int4.gguf    simulated, to compare")]
pub(crate) struct Quantize {
    /// A .gguf file, a Hugging Face folder, org/name in the Hugging Face cache, or `specimen`
    pub(crate) model: String,
    /// What every matrix becomes; the per-channel ones are simulated and stored as F32
    #[arg(long, value_name = "TYPE", value_parser = target())]
    pub(crate) to: Target,
    /// The file to write; one that is there is replaced when all went well
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Threads; by default as many as the machine has cores
    #[arg(short, long, value_name = "N", env = "GLASSBOX_THREADS", value_parser = at_least_one)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Accept a configuration key that nothing reads, with the reason why it is harmless
    #[arg(long, value_name = "KEY=REASON")]
    pub(crate) allow_unread: Vec<String>,
    /// One JSON document: tensors, bytes and errors by type
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Explain {
    /// The model, as after `-m`
    #[arg(value_name = "MODEL")]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelChoice,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Models {
    /// The built-in model, models in this folder, models in the Hugging Face cache
    #[command(visible_alias = "ls")]
    List {
        /// Look for models in this folder too
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model from the Hugging Face hub into the cache; an interrupted fetch goes on
    #[command(after_long_help = "\
Examples:
  glassbox models pull org/name                 config, tokenizer and safetensors weights
  glassbox models pull org/name@v1.0            a branch, a tag or a commit
  glassbox models pull org/name:Q4_K_M          one of the GGUF files of a repository

Variables: HF_ENDPOINT (a mirror), HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HTTPS_PROXY, NO_PROXY")]
    Pull {
        /// org/name, org/name@revision or org/name:QUANT
        #[arg(value_name = "MODEL")]
        named: String,
        /// One JSON document: path, revision, files with their bytes
        #[arg(long)]
        json: bool,
        /// No progress and no remarks
        #[arg(short, long)]
        quiet: bool,
    },
    /// Architecture, sizes, storage types and tokenizer of one model
    #[command(visible_alias = "show")]
    Info {
        /// The model, as after `-m`
        #[arg(value_name = "MODEL")]
        named: Option<String>,
        #[command(flatten)]
        model: ModelChoice,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "wanted a whole number from 1 on".to_owned())
}

/// A count or a seed; a sign or a fraction is told apart from a number that is too large.
fn whole<N: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        std::num::IntErrorKind::PosOverflow => "wanted a smaller number".to_owned(),
        _ => "wanted a whole number from 0 on".to_owned(),
    })
}

/// The storage types of the cache, by name.
fn kv_type() -> impl TypedValueParser<Value = KvType> {
    PossibleValuesParser::new(KvType::ALL.map(KvType::name)).try_map(|name| name.parse())
}

/// The storage types that can be written, by name.
fn target() -> impl TypedValueParser<Value = Target> {
    let named = |name: String| Target::ALL.into_iter().find(|target| target.name() == name).ok_or("no such type");
    PossibleValuesParser::new(Target::ALL.map(Target::name)).try_map(named)
}

fn stop_text(text: &str) -> Result<String, String> {
    // Every text begins with the empty one.
    if text.is_empty() { Err("wanted a text; leave it out to stop at none".to_owned()) } else { Ok(text.to_owned()) }
}

fn token_id(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "wanted token ids with commas between them, as in 1,5,9".to_owned())
}

/// An empty language, as an unset variable of a CI system gives, is the default.
fn language(text: &str) -> Result<Lang, glassbox_report::UnknownLang> {
    if text.is_empty() { Ok(Lang::default()) } else { text.parse() }
}
