//! The shape of `tokenizer.json`: every key that exists is named here, so that a new one is an error.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use tokenizers::models::bpe::Merges;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) truncation: Value,
    #[serde(default)]
    pub(crate) padding: Value,
    #[serde(default)]
    pub(crate) added_tokens: Vec<Added>,
    #[serde(default)]
    pub(crate) normalizer: Value,
    #[serde(default)]
    pub(crate) pre_tokenizer: Value,
    #[serde(default)]
    pub(crate) post_processor: Value,
    #[serde(default)]
    pub(crate) decoder: Value,
    pub(crate) model: ModelPart,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Added {
    pub(crate) id: u32,
    pub(crate) content: String,
    pub(crate) single_word: bool,
    pub(crate) lstrip: bool,
    pub(crate) rstrip: bool,
    pub(crate) normalized: bool,
    pub(crate) special: bool,
}

/// The model's keys of all types that exist, so that another type gets a clear message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelPart {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) vocab: VocabPart,
    #[serde(default)]
    pub(crate) merges: Option<MergesPart>,
    #[serde(default)]
    pub(crate) dropout: Option<f32>,
    #[serde(default)]
    pub(crate) unk_token: Option<String>,
    #[serde(default)]
    pub(crate) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(crate) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(crate) fuse_unk: Option<bool>,
    #[serde(default)]
    pub(crate) byte_fallback: Option<bool>,
    #[serde(default)]
    pub(crate) ignore_merges: Option<bool>,
    #[serde(default, rename = "unk_id")]
    pub(crate) _unk_id: Option<u32>,
    #[serde(default)]
    pub(crate) max_input_chars_per_word: Option<usize>,
}

/// A token → id object; anything else only says that the model is not byte-pair encoding.
pub(crate) enum VocabPart {
    Ids(Vec<(String, u32)>),
    Other,
}

impl<'de> Deserialize<'de> for VocabPart {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = VocabPart;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tokens and ids")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VocabPart, A::Error> {
                let mut ids = Vec::new();
                while let Some(pair) = map.next_entry::<String, u32>()? {
                    ids.push(pair);
                }
                Ok(VocabPart::Ids(ids))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<VocabPart, A::Error> {
                while seq.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(VocabPart::Other)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Merges as pairs; old files write each as one string with a space.
pub(crate) struct MergesPart(pub(crate) Merges);

impl<'de> Deserialize<'de> for MergesPart {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Merge((String, String));
        impl<'de> Deserialize<'de> for Merge {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;
                impl<'de> Visitor<'de> for Reader {
                    type Value = Merge;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a merge of two strings, or one with a space between")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<Merge, E> {
                        let (left, right) = text.split_once(' ').ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))?;
                        if right.contains(' ') {
                            return Err(E::invalid_value(de::Unexpected::Str(text), &self));
                        }
                        Ok(Merge((left.to_owned(), right.to_owned())))
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Merge, A::Error> {
                        let wanted = "a merge of two strings";
                        let left = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &wanted))?;
                        let right = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &wanted))?;
                        if seq.next_element::<de::IgnoredAny>()?.is_some() {
                            return Err(de::Error::invalid_length(3, &wanted));
                        }
                        Ok(Merge((left, right)))
                    }
                }
                deserializer.deserialize_any(Reader)
            }
        }
        Ok(Self(Vec::<Merge>::deserialize(deserializer)?.into_iter().map(|merge| merge.0).collect()))
    }
}
