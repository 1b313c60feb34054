//! What a user may type after `score`.

use super::ModelChoice;

#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  glassbox score --context \"The capital of France is\" \" Paris\" \" Rome\"     which does the model find likelier?
  glassbox score -m model.gguf --chat --context \"What is 2 + 2?\" 4 5
  glassbox score -m model.gguf - < text.txt                              how well does it foresee a text?

Logarithms are natural and of the raw distribution. White space at the end of the context is counted to the continuation, as tokens
begin with it; texts that would share a token are tokenised apart, and the table says so.")]
pub(crate) struct Score {
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    /// What stands before each continuation; without it the first token has no probability unless the model begins with BOS
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) context: String,
    /// The context is the user's message of a chat, and the continuations are answers
    #[arg(long)]
    pub(crate) chat: bool,
    /// The texts to score; `-` alone reads standard input as one text
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) continuations: Vec<String>,
    /// One JSON document, with every token
    #[arg(long)]
    pub(crate) json: bool,
}
