//! `embed`: texts in, vectors out, and how alike they are.

use glassbox_mechanisms::cache::KvType;
use glassbox_model::{SentenceRecipe, cosine};
use glassbox_text::{Specials, Tokenizer};
use serde::Serialize;

use crate::args::{ActivationChoice, Embed, ModelChoice};
use crate::exit::{Exit, Failure};
use crate::opened::{Opened, standard_input};
use crate::{Outcome, not_finite, terminal};

/// Most texts of which the document has all similarities: their number grows with the square.
const MOST_COMPARED: usize = 256;

/// Most texts of which a terminal shows all similarities.
const MOST_SHOWN: usize = 12;

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    model: &'a str,
    /// What one vector is made of, joined where there are several.
    pooling: Vec<&'static str>,
    unit_length: bool,
    /// Longest text in tokens.
    most_tokens: usize,
    dimensions: usize,
    embeddings: &'a [Embedding],
    /// [text × text] cosines; none where there are more texts than are compared.
    similarity: Option<Vec<Vec<f64>>>,
}

/// One text and its vector.
#[derive(Serialize)]
struct Embedding {
    text: String,
    ids: Vec<u32>,
    /// Tokens at the end of the text that the model did not see.
    left_out: usize,
    vector: Vec<f32>,
}

pub(crate) fn run(command: &Embed) -> Outcome {
    let choice = ModelChoice {
        model: command.model.clone(),
        threads: command.threads,
        kernels: command.kernels,
        activations: ActivationChoice::Exact,
        kv_type: KvType::F32,
        allow_unread: command.allow_unread.clone(),
    };
    let opened = Opened::open(&choice)?;
    let encoder = opened.encoder()?;
    let tokenizer = opened.tokenizer()?;
    let recipe = SentenceRecipe::of(&opened.checkpoint, encoder)?;
    if !recipe.declared {
        terminal::remark("the model does not say how its vectors become one; this is the mean over all tokens");
    }
    let texts = match command.texts.as_slice() {
        [only] if only == "-" => standard_input()?.lines().map(str::to_owned).collect(),
        texts => texts.to_vec(),
    };
    if texts.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!("standard input is empty; wanted a text a line")));
    }
    let mut embeddings = Vec::with_capacity(texts.len());
    for (index, text) in texts.into_iter().enumerate() {
        let embedding = embed(&opened, tokenizer, &recipe, text)?;
        if embedding.left_out > 0 {
            terminal::remark(&format!(
                "text {} is cut: the model reads {} tokens; the last {} are left out",
                index + 1,
                recipe.most_tokens,
                embedding.left_out
            ));
        }
        embeddings.push(embedding);
    }
    if command.json {
        let row = |one: &Embedding| embeddings.iter().map(|other| cosine(&one.vector, &other.vector)).collect();
        terminal::print_json(&Document {
            format: "glassbox-embeddings",
            version: 1,
            model: &opened.name,
            pooling: recipe.poolings.iter().map(|pooling| pooling.name()).collect(),
            unit_length: recipe.unit_length,
            most_tokens: recipe.most_tokens,
            dimensions: embeddings[0].vector.len(),
            embeddings: &embeddings,
            similarity: (embeddings.len() <= MOST_COMPARED).then(|| embeddings.iter().map(row).collect()),
        })?;
    } else {
        show(&opened, &recipe, &embeddings)?;
    }
    Ok(Exit::Success)
}

fn embed(opened: &Opened, tokenizer: &Tokenizer, recipe: &SentenceRecipe, text: String) -> Result<Embedding, Failure> {
    let encoder = opened.encoder()?;
    let mut read = format!("{}{text}", recipe.prompt);
    if recipe.lower_case {
        read = tokenizer.lower_cased(&read);
    }
    let framed = tokenizer.encode_framed(&read, None, Specials::Parse, recipe.most_tokens)?;
    let encoded = encoder.encode(&framed.ids, Some(&framed.token_types), &opened.workers)?;
    not_finite::check(opened, &framed.ids, &encoded.vectors)?;
    let vector = recipe.vector(&encoded, encoder.blueprint().d_model);
    Ok(Embedding { text, ids: framed.ids, left_out: framed.left_out, vector })
}

fn show(opened: &Opened, recipe: &SentenceRecipe, embeddings: &[Embedding]) -> Result<(), Failure> {
    /// Numbers of a vector in a table; all are in the document of `--json`.
    const NUMBERS: usize = 4;
    let pooling: Vec<&str> = recipe.poolings.iter().map(|pooling| pooling.name()).collect();
    let length = if recipe.unit_length { ", of length 1" } else { "" };
    terminal::print(&format!("{}: {}\n", opened.name, opened.description()))?;
    terminal::print(&format!(
        "pooling {}{length}; {} numbers a text (`--json` has all)\n\n",
        pooling.join(" + "),
        embeddings[0].vector.len()
    ))?;
    let mut table = terminal::table(&["", "tokens", "vector", "text"]);
    for (index, embedding) in embeddings.iter().enumerate() {
        let numbers: Vec<String> = embedding.vector.iter().take(NUMBERS).map(|number| format!("{number:+.4}")).collect();
        table.add_row([
            (index + 1).to_string(),
            embedding.ids.len().to_string(),
            format!("{} …", numbers.join(" ")),
            terminal::excerpt(&embedding.text),
        ]);
    }
    terminal::print_table(table)?;
    if embeddings.len() > MOST_SHOWN {
        terminal::remark(&format!("similarities are shown for at most {MOST_SHOWN} texts; `--json` has those of {MOST_COMPARED}"));
    } else if embeddings.len() > 1 {
        terminal::print("\nsimilarity (cosine)\n")?;
        let numbers: Vec<String> = (1..=embeddings.len()).map(|number| number.to_string()).collect();
        let header: Vec<&str> = std::iter::once("").chain(numbers.iter().map(String::as_str)).collect();
        let mut table = terminal::table(&header);
        for (number, one) in numbers.iter().zip(embeddings) {
            let cells = embeddings.iter().map(|other| format!("{:+.3}", cosine(&one.vector, &other.vector)));
            table.add_row(std::iter::once(number.clone()).chain(cells));
        }
        terminal::print_table(table)?;
    }
    Ok(())
}
