//! The files in which a folder says how a text becomes one vector: those of sentence-transformers. Any step and any key that is not known is
//! refused.

use glassbox_checkpoint::{Checkpoint, CheckpointError, CheckpointKind, Fault, Place};
use serde_json::{Map, Value, json};

use crate::ModelError;
use crate::blueprint::Blueprint;
use crate::sentence::{Pooling, SentenceRecipe};

const MODULES: &str = "modules.json";
const LENGTHS: &str = "sentence_bert_config.json";
const TOKENIZER: &str = "tokenizer_config.json";
const PROMPTS: &str = "config_sentence_transformers.json";

/// What the files of an encoder say; what nothing says is as sentence-transformers has it.
pub(crate) fn read(checkpoint: &Checkpoint, blueprint: &Blueprint) -> Result<SentenceRecipe, ModelError> {
    let mut recipe = SentenceRecipe {
        poolings: vec![Pooling::Mean],
        unit_length: false,
        most_tokens: blueprint.context,
        lower_case: false,
        prompt: String::new(),
        declared: false,
    };
    if checkpoint.kind() == CheckpointKind::Gguf {
        of_gguf(checkpoint, &mut recipe)?;
        return Ok(recipe);
    }
    let object = |name: &str| -> Result<Option<Map<String, Value>>, ModelError> {
        match checkpoint.json_beside(name)? {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(refuse(checkpoint, name, "", "a JSON object", &other)),
        }
    };
    let tokenizer = object(TOKENIZER)?.unwrap_or_default();
    let longest = |value: &Value| value.as_f64().filter(|longest| *longest >= 1.0).map(|longest| longest as usize);
    // Some folders write a number without meaning, far above any size, for "no limit".
    let stated = tokenizer.get("model_max_length").and_then(longest).unwrap_or(usize::MAX);
    recipe.most_tokens = blueprint.context.min(stated);
    if let Some(side) = tokenizer.get("truncation_side").filter(|side| !side.is_null() && *side != "right") {
        return Err(refuse(checkpoint, TOKENIZER, "truncation_side", "`right`: a text that is too long loses its end", side));
    }
    let Some(modules) = checkpoint.json_beside(MODULES)? else { return Ok(recipe) };
    recipe.declared = true;
    let pooling_file = steps(checkpoint, &modules, &mut recipe)?;
    let pooling =
        object(&pooling_file)?.ok_or_else(|| refuse(checkpoint, &pooling_file, "", "the settings of the pooling", &Value::Null))?;
    recipe.poolings = poolings(checkpoint, &pooling_file, &pooling, blueprint)?;
    for (key, value) in object(LENGTHS)?.unwrap_or_default() {
        match (key.as_str(), &value) {
            ("max_seq_length" | "do_lower_case", Value::Null) => {}
            ("do_lower_case", Value::Bool(flag)) => recipe.lower_case = *flag,
            ("max_seq_length", value) if longest(value).is_some() => {
                recipe.most_tokens = longest(value).map_or(blueprint.context, |longest| longest.min(blueprint.context));
            }
            ("transformer_task", value) if value == "feature-extraction" => {}
            ("module_output_name", value) if value == "token_embeddings" => {}
            ("modality_config", value) if *value == json!({"text": {"method": "forward", "method_output_name": "last_hidden_state"}}) => {}
            _ => return Err(refuse(checkpoint, LENGTHS, &key, "a setting of the last layer's vectors of a text", &value)),
        }
    }
    let prompts = object(PROMPTS)?.unwrap_or_default();
    if let Some(name) = prompts.get("default_prompt_name").filter(|name| !name.is_null()) {
        let prompt = name.as_str().and_then(|name| prompts.get("prompts")?.get(name)?.as_str());
        recipe.prompt =
            prompt.ok_or_else(|| refuse(checkpoint, PROMPTS, "default_prompt_name", "the name of one of `prompts`", name))?.to_owned();
        if pooling.get("include_prompt") == Some(&Value::Bool(false)) {
            return Err(refuse(checkpoint, &pooling_file, "include_prompt", "true: a prompt is pooled like the text", &Value::Bool(false)));
        }
    }
    if let Some(size) = prompts.get("truncate_dim").filter(|size| !size.is_null()) {
        return Err(refuse(checkpoint, PROMPTS, "truncate_dim", "null: a vector is given whole", size));
    }
    Ok(recipe)
}

/// Reads the steps, which are an encoder, a pooling, and perhaps the division by the length; gives the file of the pooling.
fn steps(checkpoint: &Checkpoint, modules: &Value, recipe: &mut SentenceRecipe) -> Result<String, ModelError> {
    let wrong = |found: &Value| refuse(checkpoint, MODULES, "", "the steps `Transformer`, `Pooling` and perhaps `Normalize`", found);
    let mut pooling_file = None;
    for (index, module) in modules.as_array().ok_or_else(|| wrong(modules))?.iter().enumerate() {
        let text = |key: &str| module.get(key).and_then(Value::as_str);
        let kind = text("type").and_then(|kind| kind.rsplit('.').next());
        match (index, kind) {
            (0, Some("Transformer")) if text("path").is_some_and(str::is_empty) => {}
            (1, Some("Pooling")) => {
                let plain = |path: &&str| {
                    !path.is_empty() && path.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
                };
                pooling_file = Some(format!("{}/config.json", text("path").filter(plain).ok_or_else(|| wrong(module))?));
            }
            (2, Some("Normalize")) => recipe.unit_length = true,
            _ => return Err(wrong(module)),
        }
    }
    pooling_file.ok_or_else(|| wrong(modules))
}

fn poolings(checkpoint: &Checkpoint, file: &str, settings: &Map<String, Value>, blueprint: &Blueprint) -> Result<Vec<Pooling>, ModelError> {
    let named = |name: &str| Pooling::ALL.into_iter().find(|pooling| pooling.name() == name);
    // Older files have a truth for each kind, which are joined in this order; newer ones a name or a list of names.
    let mut by_truths = Vec::new();
    let mut by_names = None;
    for (key, value) in settings {
        let refuse = |wanted: &str| refuse(checkpoint, file, key, wanted, value);
        match key.as_str() {
            "word_embedding_dimension" | "embedding_dimension" => {
                if value.as_u64() != Some(blueprint.d_model as u64) {
                    return Err(refuse(&format!("{}, the size of the model's vectors", blueprint.d_model)));
                }
            }
            "include_prompt" if value.is_boolean() => {}
            "pooling_mode" => {
                let names = match value {
                    Value::Array(names) => names.iter().collect(),
                    one => vec![one],
                };
                let all = names.into_iter().map(|name| name.as_str().and_then(named)).collect::<Option<Vec<Pooling>>>();
                by_names = Some(all.filter(|all| !all.is_empty()).ok_or_else(|| refuse(&known()))?);
            }
            _ => {
                let kind = key.strip_prefix("pooling_mode_").and_then(|kind| {
                    named(kind).or_else(|| named(kind.strip_suffix("_tokens")?)).or_else(|| named(kind.strip_suffix("_token")?))
                });
                match (value, kind) {
                    (Value::Bool(false), _) if key.starts_with("pooling_mode_") => {}
                    (Value::Bool(true), Some(kind)) => by_truths.push(kind),
                    _ => return Err(refuse(&known())),
                }
            }
        }
    }
    by_truths.sort_by_key(|kind| Pooling::ALL.iter().position(|known| known == kind));
    Ok(by_names.unwrap_or(if by_truths.is_empty() { vec![Pooling::Mean] } else { by_truths }))
}

fn known() -> String {
    format!("one of {}", Pooling::ALL.map(|pooling| format!("`{}`", pooling.name())).join(", "))
}

/// A GGUF file has a number for the pooling.
fn of_gguf(checkpoint: &Checkpoint, recipe: &mut SentenceRecipe) -> Result<(), ModelError> {
    let settings = checkpoint.settings();
    let key = format!("{}.pooling_type", settings.str("general.architecture")?);
    recipe.unit_length = true;
    recipe.declared = true;
    recipe.poolings = vec![match settings.optional_usize(&key)? {
        None | Some(0) => {
            recipe.declared = false;
            Pooling::Mean
        }
        Some(1) => Pooling::Mean,
        Some(2) => Pooling::First,
        Some(3) => Pooling::Last,
        Some(other) => {
            return Err(settings
                .refuse(
                    &key,
                    "0 (none), 1 (mean), 2 (first) or 3 (last)",
                    &other.to_string(),
                    "take a model for embeddings, not for ranking",
                )
                .into());
        }
    }];
    Ok(())
}

fn refuse(checkpoint: &Checkpoint, file: &str, key: &str, wanted: &str, found: &Value) -> ModelError {
    let mut found = found.to_string();
    if let Some((cut, _)) = found.char_indices().nth(80) {
        found.truncate(cut);
        found.push('…');
    }
    CheckpointError::Setting(Box::new(Fault {
        file: format!("{}/{file}", checkpoint.label()),
        place: if key.is_empty() { Place::Whole } else { Place::Key(key.to_owned()) },
        wanted: wanted.to_owned(),
        found,
        remedy: "another step would give other vectors: run this model with sentence-transformers, or correct the file".to_owned(),
    }))
    .into()
}
