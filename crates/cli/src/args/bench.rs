//! What a user may type after `bench`.

use std::num::NonZeroUsize;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use glassbox_bench::growth::{CURVES, Curve};
use glassbox_mechanisms::cache::KvType;

use super::{ActivationChoice, KernelChoice, LanguageChoice, at_least_one, kv_type, whole};

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Every combination of the lists is measured, as llama-bench does it: `pp512` reads 512 tokens together and
computes the logits of the last, `tg64` reads 64 one by one; `@ d2048`: 2048 are in the cache before.

Examples:
  glassbox bench -m model.gguf
  glassbox bench -m model.gguf -p 512,2048 -n 64 -d 0,2048 -t 1,2 -r 5
  glassbox bench -m model.gguf -p 0 -n 64 --kv-type f32,f16,q8_0 --json | jq .tests
  glassbox bench -m model.gguf -p 2048 -n 0 --capture none,spans,all
  glassbox bench growth")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) other: Option<BenchOther>,
    /// A .gguf file, a Hugging Face folder, org/name[@revision][:QUANT] in the Hugging Face cache, or `specimen`
    #[arg(short, long, value_name = "MODEL", env = "GLASSBOX_MODEL", default_value = "specimen")]
    pub(crate) model: String,
    /// Tokens of a prompt; 0 measures none
    #[arg(short, long, value_name = "TOKENS", default_value = "512", alias = "n-prompt", value_delimiter = ',', value_parser = whole::<usize>)]
    pub(crate) prompt: Vec<usize>,
    /// Tokens to generate; 0 measures none
    #[arg(short = 'n', long, value_name = "TOKENS", default_value = "128", alias = "n-gen", value_delimiter = ',', value_parser = whole::<usize>)]
    pub(crate) generate: Vec<usize>,
    /// Tokens in the cache before the clock starts
    #[arg(short, long, value_name = "TOKENS", default_value = "0", alias = "n-depth", value_delimiter = ',', value_parser = whole::<usize>)]
    pub(crate) depth: Vec<usize>,
    /// Threads; by default as many as the machine has cores
    #[arg(short, long, value_name = "N", env = "GLASSBOX_THREADS", value_delimiter = ',', value_parser = at_least_one)]
    pub(crate) threads: Vec<NonZeroUsize>,
    /// How the cache stores keys and values
    #[arg(long, value_name = "TYPE", default_value = KvType::F32.name(), value_delimiter = ',', value_parser = kv_type())]
    pub(crate) kv_type: Vec<KvType>,
    /// Times that everything is measured, after one warm-up
    #[arg(short, long, value_name = "N", default_value = "5", value_parser = at_least_one)]
    pub(crate) repetitions: NonZeroUsize,
    /// Which version of every mechanism runs: `textbook` is the definitions in double precision, slow
    #[arg(long, value_name = "KERNELS", default_value = "fast")]
    pub(crate) kernels: KernelChoice,
    /// What meets quantised weights: `rounded` activations are bytes, fast, as in llama.cpp; `exact` ones stay as they are
    #[arg(long, value_name = "ACTIVATIONS", default_value = "rounded")]
    pub(crate) activations: ActivationChoice,
    /// What is watched meanwhile: shares of 8 spans, entropy and distances of every row of attention, or all statistics
    #[arg(long, value_name = "STATISTICS", default_value = "none", value_delimiter = ',', conflicts_with = "paced")]
    pub(crate) capture: Vec<CaptureChoice>,
    /// Accept a configuration key that nothing reads, with the reason why it is harmless
    #[arg(long, value_name = "KEY=REASON")]
    pub(crate) allow_unread: Vec<String>,
    /// One JSON document: every repetition, memory, the machine
    #[arg(long)]
    pub(crate) json: bool,
    /// Wait for a test a line on standard input (`pp512`, `tg64 @ d2048`, `load`) and run it once: to take turns with another program
    #[arg(long, conflicts_with_all = ["prompt", "generate", "depth", "repetitions", "json"])]
    pub(crate) paced: bool,
}

/// What is watched, by name.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureChoice {
    None,
    Spans,
    All,
}

/// What else can be measured.
#[derive(Subcommand, Debug)]
pub(crate) enum BenchOther {
    /// Measure how time and memory grow with the length of a text, and fit exponents
    Growth(Growth),
}

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Curves: generation with and without a cache, attention with the whole matrix of scores and in tiles, caches of
MHA, GQA and MQA. The exponent is that of the power of n that fits all points, with its 95 % interval.

Examples:
  glassbox bench growth
  glassbox bench growth --curve generation-cached,generation-uncached -m model.gguf
  glassbox bench growth --json | jq '.curves[] | {name, exponent}'")]
pub(crate) struct Growth {
    /// The model that generates; attention alone and its caches do not depend on it
    #[arg(short, long, value_name = "MODEL", env = "GLASSBOX_MODEL", default_value = "specimen")]
    pub(crate) model: String,
    /// Only these curves
    #[arg(long, value_name = "CURVES", value_delimiter = ',', value_parser = curve())]
    pub(crate) curve: Vec<&'static Curve>,
    #[command(flatten)]
    pub(crate) language: LanguageChoice,
    /// One JSON document: every point
    #[arg(long)]
    pub(crate) json: bool,
}

/// The curves of growth, by name.
fn curve() -> impl TypedValueParser<Value = &'static Curve> {
    PossibleValuesParser::new(CURVES.iter().map(|curve| curve.name)).try_map(|name| Curve::named(&name).ok_or("no such curve"))
}
