//! Which files of a repository a model needs. Nothing else is fetched.

use std::collections::BTreeSet;

use glassbox_checkpoint::{ModelName, NoChoice, choose_gguf, gguf_choices};
use serde::Deserialize;

use crate::error::{HubError, clip, fault};
use crate::listing::Listing;

/// What to fetch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// A folder of safetensors: these files, and then those that `index` names, if there is one.
    Folder { files: Vec<String>, index: Option<&'static str> },
    /// One GGUF file, or its parts.
    Gguf(Vec<String>),
}

const CONFIG: &str = "config.json";
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Files beside the weights that say what the model is and how text becomes tokens; small.
const BESIDE: &[&str] = &[
    CONFIG,
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
];
const TEMPLATES: &str = "additional_chat_templates/";

/// Chooses what `model` needs of `listing`.
///
/// # Errors
///
/// Where nothing is usable, or the quantisation is missing, unknown or means several files; the message lists what there is.
pub(crate) fn select(model: &ModelName, listing: &Listing) -> Result<Selection, HubError> {
    let name = model.to_string();
    let refuse = |wanted: String, found: String, remedy: String| Err(HubError::Choice(fault(&name, wanted, found, remedy)));
    let has_folder = listing.has(CONFIG) && (listing.has(SINGLE) || listing.has(INDEX));
    let quantisation = model.quantisation.as_deref();
    if has_folder && quantisation.is_none() {
        return Ok(folder(listing));
    }
    let choices = gguf_choices(listing.files.iter().map(String::as_str));
    let wanted =
        quantisation.map_or_else(|| "one GGUF file".to_owned(), |quantisation| format!("a GGUF file with `{quantisation}` in its name"));
    match choose_gguf(&choices, quantisation) {
        Ok(choice) => Ok(Selection::Gguf(choice.files.clone())),
        Err(NoChoice::None(_)) if choices.is_empty() && has_folder => {
            refuse(wanted, "safetensors weights only".to_owned(), "leave the part after `:` out".to_owned())
        }
        Err(NoChoice::None(_)) if choices.is_empty() => {
            let wanted = format!("{CONFIG} with {SINGLE}, or GGUF files");
            refuse(wanted, other_weights(listing), "look for a repository with safetensors or GGUF weights, or convert these".to_owned())
        }
        Err(NoChoice::None(there)) => refuse(wanted, there, format!("name one of these as `{}:QUANT`", bare(model))),
        Err(NoChoice::Several(there)) => refuse(wanted, format!("several: {there}"), format!("name one as `{}:QUANT`", bare(model))),
        Err(NoChoice::Incomplete(found)) => {
            refuse("all parts of a split GGUF file".to_owned(), found, "choose another quantisation, or tell the publisher".to_owned())
        }
        // An error of a later version of the choice is still no choice.
        Err(_) => refuse(wanted, "no clear choice".to_owned(), "give the path of a file".to_owned()),
    }
}

/// The shards that an index names, in alphabetical order; each is in `listing`.
///
/// # Errors
///
/// Where the index cannot be read, or names a file that is not there.
pub(crate) fn shards(model: &ModelName, listing: &Listing, index: &[u8]) -> Result<Vec<String>, HubError> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let place = format!("{model}: {INDEX}");
    let wrong = |wanted: &str, found: String| {
        HubError::Malformed(fault(&place, wanted, found, "the repository is broken; choose another revision, or tell the publisher"))
    };
    let index: Index = serde_json::from_slice(index).map_err(|error| wrong("an index with `weight_map`", error.to_string()))?;
    let shards: BTreeSet<String> = index.weight_map.into_values().collect();
    match shards.iter().find(|shard| !listing.has(shard)) {
        Some(missing) => Err(wrong("shards that the repository has", format!("`{}`", clip(missing)))),
        None => Ok(shards.into_iter().collect()),
    }
}

fn folder(listing: &Listing) -> Selection {
    let beside = BESIDE.iter().copied().filter(|name| listing.has(name)).map(str::to_owned);
    let is_template = |file: &&String| file.strip_prefix(TEMPLATES).is_some_and(|rest| rest.ends_with(".jinja") && !rest.contains('/'));
    let mut files: Vec<String> = beside.chain(listing.files.iter().filter(is_template).cloned()).collect();
    // With both, the single file is complete in itself; two kinds at once would be refused on opening.
    let (weights, index) = if listing.has(SINGLE) { (SINGLE, None) } else { (INDEX, Some(INDEX)) };
    files.push(weights.to_owned());
    Selection::Folder { files, index }
}

/// The name without its quantisation.
fn bare(model: &ModelName) -> ModelName {
    ModelName { quantisation: None, ..model.clone() }
}

/// What stands there instead of weights that can be read.
fn other_weights(listing: &Listing) -> String {
    const KNOWN: &[&str] = &[".bin", ".safetensors", ".onnx", ".h5", ".msgpack", ".pt", ".pth", ".gguf"];
    let other = listing.files.iter().filter(|file| KNOWN.iter().any(|ending| file.ends_with(ending)));
    let other: Vec<String> = other.take(5).map(|file| clip(file)).collect();
    if other.is_empty() { "no weights".to_owned() } else { other.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str]) -> Listing {
        let mut files: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        files.sort_unstable();
        Listing { commit: "0".repeat(40), files }
    }

    fn selected(model: &str, names: &[&str]) -> Result<Selection, String> {
        select(&ModelName::parse(model).expect("a name"), &listing(names)).map_err(|error| error.to_string())
    }

    #[test]
    fn only_what_is_needed_is_chosen() {
        let names = [
            ".gitattributes",
            "README.md",
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "pytorch_model.bin",
            "onnx/model.onnx",
            "original/consolidated.00.pth",
            "original/params.json",
            "consolidated.safetensors",
            "flax_model.msgpack",
            "additional_chat_templates/tool.jinja",
            "additional_chat_templates/x/y.jinja",
            "chat_template.jinja",
            "1_Pooling/config.json",
        ];
        let wanted = [
            "config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "chat_template.jinja",
            "1_Pooling/config.json",
            "additional_chat_templates/tool.jinja",
            "model.safetensors",
        ];
        let files = wanted.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(selected("org/name", &names), Ok(Selection::Folder { files, index: None }));
    }

    #[test]
    fn an_index_leads_to_its_shards_and_to_no_others() {
        let names = ["config.json", INDEX, "model-1.safetensors", "model-2.safetensors", "consolidated.safetensors"];
        let files = vec!["config.json".to_owned(), INDEX.to_owned()];
        assert_eq!(selected("org/name", &names), Ok(Selection::Folder { files, index: Some(INDEX) }));
        let model = ModelName::parse("org/name").expect("a name");
        let read = |index: &str| shards(&model, &listing(&names), index.as_bytes()).map_err(|error| error.to_string());
        let index =
            r#"{"metadata": {}, "weight_map": {"a": "model-2.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}}"#;
        assert_eq!(read(index), Ok(vec!["model-1.safetensors".to_owned(), "model-2.safetensors".to_owned()]));
        for (index, word) in [(r#"{"weight_map": {"a": "../x"}}"#, "`../x`"), ("{}", "weight_map"), ("<html>", "weight_map")] {
            let error = read(index).expect_err(index);
            assert!(error.contains(word) && error.contains(INDEX), "{error}");
        }
    }

    #[test]
    fn a_single_file_makes_the_index_superfluous() {
        let names = ["config.json", INDEX, SINGLE];
        let files = vec!["config.json".to_owned(), SINGLE.to_owned()];
        assert_eq!(selected("org/name", &names), Ok(Selection::Folder { files, index: None }));
    }

    #[test]
    fn of_gguf_files_the_one_of_the_quantisation_is_chosen() {
        let names = [
            "config.json",
            "m-Q4_K_M.gguf",
            "m-Q8_0.gguf",
            "mmproj-F16.gguf",
            "B/m-BF16-00001-of-00002.gguf",
            "B/m-BF16-00002-of-00002.gguf",
        ];
        let gguf = |files: &[&str]| Ok(Selection::Gguf(files.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(selected("org/name:q8_0", &names), gguf(&["m-Q8_0.gguf"]));
        assert_eq!(selected("org/name:BF16", &names), gguf(&names[4..]));
        assert_eq!(selected("org/one", &["only.gguf"]), gguf(&["only.gguf"]));
        let several = "org/name: wanted one GGUF file, found several: BF16, Q4_K_M, Q8_0; name one as `org/name:QUANT`";
        assert_eq!(selected("org/name", &names), Err(several.to_owned()));
        let none = "org/name@v1:Q2_K: wanted a GGUF file with `Q2_K` in its name, found BF16, Q4_K_M, Q8_0; name one of these as `org/name@v1:QUANT`";
        assert_eq!(selected("org/name@v1:Q2_K", &names), Err(none.to_owned()));
    }

    #[test]
    fn a_repository_without_usable_weights_says_what_it_has() {
        let error = selected("org/name", &["config.json", "pytorch_model.bin", "README.md"]).expect_err("no weights");
        assert!(error.contains("found pytorch_model.bin; look for a repository with safetensors"), "{error}");
        let error = selected("org/name", &["README.md"]).expect_err("no weights");
        assert!(error.contains("found no weights"), "{error}");
        let error = selected("org/name:Q4", &["config.json", SINGLE]).expect_err("no GGUF");
        assert!(error.contains("safetensors weights only; leave the part after `:` out"), "{error}");
    }
}
