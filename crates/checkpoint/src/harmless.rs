//! Settings that never change the numbers of a forward pass, each with its reason; and those that say "not like this".

use crate::CheckpointError;
use crate::settings::{CheckpointKind, Expected, Settings};

const TRAINING: &str = "used in training only";
const GENERATION: &str = "a default for generation, which `generate` takes from its own options";
const TOKENS: &str = "read with the tokenizer";
const HISTORY: &str = "says how the file came about";
const CLASSES: &str = "labels of classification heads, which are not run";
const OUTPUTS: &str = "says what the original program returns, not how it computes";

/// Keys of `config.json`, each covering everything below it.
const HUGGING_FACE: &[(&str, &str)] = &[
    ("transformers_version", HISTORY),
    ("_name_or_path", HISTORY),
    ("_commit_hash", HISTORY),
    ("unsloth_fixed", HISTORY),
    ("unsloth_version", HISTORY),
    ("transformers.js_config", "for another program"),
    ("architectures", "names a class of the original program; `model_type` decides here, and every tensor must find its place"),
    ("torch_dtype", "the file says for each tensor how it is stored"),
    ("dtype", "the file says for each tensor how it is stored"),
    ("use_cache", "the cache changes the time, never the numbers"),
    ("output_past", "an older name of `use_cache`"),
    ("cache_implementation", "the cache changes the time, never the numbers"),
    ("_attn_implementation", "names a kernel of the original program"),
    ("_attn_implementation_autoset", "names a kernel of the original program"),
    ("is_decoder", "every model run here is a decoder, with or without this key"),
    ("attention_dropout", TRAINING),
    ("attention_probs_dropout_prob", TRAINING),
    ("attn_pdrop", TRAINING),
    ("embd_pdrop", TRAINING),
    ("resid_pdrop", TRAINING),
    ("resid_dropout", TRAINING),
    ("embd_dropout", TRAINING),
    ("hidden_dropout", TRAINING),
    ("hidden_dropout_prob", TRAINING),
    ("classifier_dropout", TRAINING),
    ("initializer_range", TRAINING),
    ("initializer_factor", TRAINING),
    ("gradient_checkpointing", TRAINING),
    ("problem_type", TRAINING),
    ("bos_token_id", TOKENS),
    ("eos_token_id", TOKENS),
    ("pad_token_id", TOKENS),
    ("unk_token_id", TOKENS),
    ("sep_token_id", TOKENS),
    ("cls_token_id", TOKENS),
    ("mask_token_id", TOKENS),
    ("decoder_start_token_id", TOKENS),
    ("tokenizer_class", TOKENS),
    ("id2label", CLASSES),
    ("label2id", CLASSES),
    ("num_labels", CLASSES),
    ("_num_labels", CLASSES),
    ("finetuning_task", CLASSES),
    ("task_specific_params", GENERATION),
    ("return_dict", OUTPUTS),
    ("output_attentions", OUTPUTS),
    ("output_hidden_states", OUTPUTS),
    ("torchscript", OUTPUTS),
    ("use_bfloat16", OUTPUTS),
    ("tf_legacy_loss", OUTPUTS),
    ("max_length", GENERATION),
    ("min_length", GENERATION),
    ("max_new_tokens", GENERATION),
    ("do_sample", GENERATION),
    ("early_stopping", GENERATION),
    ("num_beams", GENERATION),
    ("num_beam_groups", GENERATION),
    ("diversity_penalty", GENERATION),
    ("temperature", GENERATION),
    ("top_k", GENERATION),
    ("top_p", GENERATION),
    ("typical_p", GENERATION),
    ("repetition_penalty", GENERATION),
    ("length_penalty", GENERATION),
    ("no_repeat_ngram_size", GENERATION),
    ("encoder_no_repeat_ngram_size", GENERATION),
    ("bad_words_ids", GENERATION),
    ("num_return_sequences", GENERATION),
    ("output_scores", GENERATION),
    ("return_dict_in_generate", GENERATION),
    ("forced_bos_token_id", GENERATION),
    ("forced_eos_token_id", GENERATION),
    ("remove_invalid_values", GENERATION),
    ("exponential_decay_length_penalty", GENERATION),
    ("suppress_tokens", GENERATION),
    ("begin_suppress_tokens", GENERATION),
];

/// Keys of `config.json` that must have these values, and why; a family may know better and ignore one.
const HUGGING_FACE_MUST: &[(&str, &[Expected], &str)] = &[
    (
        "quantization_config",
        &[Expected::Absent],
        "the weights are packed in a way that is not read here: use the unquantised folder, or a GGUF file",
    ),
    (
        "auto_map",
        &[Expected::Absent],
        "the model brings Python code of its own, which is never run here: use a version that `transformers` knows by itself",
    ),
    ("is_encoder_decoder", &[Expected::Bool(false)], "only decoders are run here"),
    ("add_cross_attention", &[Expected::Bool(false)], "cross-attention is not run here"),
    ("cross_attention_hidden_size", &[Expected::Absent], "cross-attention is not run here"),
    ("tie_encoder_decoder", &[Expected::Bool(false)], "only decoders are run here"),
    ("pruned_heads", &[Expected::Empty], "models with pruned heads are not run here"),
    ("chunk_size_feed_forward", &[Expected::Integer(0)], "chunked feed-forward is not run here"),
    ("sparsity_config", &[Expected::Absent], "sparse weights are not read here"),
];

/// Parts of `config.json` that are written as configurations of their own: the language model of a model of several parts, and MPT's attention.
const SECTIONS: &[&str] = &["text_config.", "attn_config."];

/// Keys and prefixes of GGUF metadata (a prefix ends in a dot).
const GGUF: &[(&str, &str)] = &[
    ("general.alignment", "read with the file's layout"),
    ("general.quantization_version", "every tensor says how it is stored, and all versions read here are the same"),
    ("general.file_type", "every tensor says how it is stored"),
    ("general.", "describes the file for people"),
    ("tokenizer.", TOKENS),
    ("quantize.", HISTORY),
    ("glassbox.", HISTORY),
    ("split.", "checked when the file was opened"),
    ("mradermacher.", HISTORY),
];

/// Why `key` does not matter, where a table here says so.
pub(crate) fn reason(kind: CheckpointKind, key: &str) -> Option<&'static str> {
    match kind {
        CheckpointKind::HuggingFace => {
            let key = SECTIONS.iter().find_map(|section| key.strip_prefix(section)).unwrap_or(key);
            HUGGING_FACE.iter().find(|(known, _)| key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        }
        CheckpointKind::Gguf if key == "general.architecture" => None, // decides everything, so it must be read
        CheckpointKind::Gguf => GGUF.iter().find(|(known, _)| key == *known || (known.ends_with('.') && key.starts_with(known))),
    }
    .map(|(_, reason)| *reason)
}

/// Refuses a model whose settings say that it needs something else.
pub(crate) fn require(settings: &Settings) -> Result<(), CheckpointError> {
    if settings.kind() != CheckpointKind::HuggingFace {
        return Ok(());
    }
    for section in SECTIONS.iter().chain([&""]) {
        for (key, allowed, why) in HUGGING_FACE_MUST {
            settings.must_be(&format!("{section}{key}"), allowed, why)?;
        }
    }
    Ok(())
}
