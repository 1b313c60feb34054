//! The texts of reports in the reader's language.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fluent_bundle::{FluentArgs, FluentBundle, FluentResource};

use crate::known;

/// Language of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    ZhCn,
}

/// A language that no report is written in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are no reports in `{0}`; wanted `en` or `zh-CN`")]
pub struct UnknownLang(String);

impl Lang {
    /// The tag that pages carry.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::ZhCn => "zh-CN",
        }
    }
}

impl FromStr for Lang {
    type Err = UnknownLang;

    fn from_str(text: &str) -> Result<Self, UnknownLang> {
        match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "en" | "en-us" | "en-gb" => Ok(Self::En),
            "zh" | "zh-cn" | "zh-hans" => Ok(Self::ZhCn),
            _ => Err(UnknownLang(text.to_owned())),
        }
    }
}

/// All texts of one language.
pub(crate) struct Texts {
    lang: Lang,
    bundle: FluentBundle<FluentResource>,
}

impl Texts {
    /// The texts of `lang`.
    pub(crate) fn new(lang: Lang) -> Self {
        let source = match lang {
            Lang::En => include_str!("../locales/en.ftl"),
            Lang::ZhCn => include_str!("../locales/zh-CN.ftl"),
        };
        let resource = FluentResource::try_new(source.to_owned()).unwrap_or_else(|(valid, _)| valid);
        let mut bundle = FluentBundle::new(lang.tag().parse().into_iter().collect());
        bundle.set_use_isolating(false);
        bundle.add_resource_overriding(resource);
        Self { lang, bundle }
    }

    /// The language.
    pub(crate) fn lang(&self) -> Lang {
        self.lang
    }

    /// A text without variables; its key where there is none, so that a missing text is seen and hides nothing.
    pub(crate) fn get(&self, key: &str) -> String {
        self.format(key, None)
    }

    /// A text with variables.
    pub(crate) fn with(&self, key: &str, values: &[(&str, &dyn fmt::Display)]) -> String {
        let mut args = FluentArgs::new();
        for (name, value) in values {
            args.set((*name).to_owned(), value.to_string());
        }
        self.format(key, Some(&args))
    }

    /// A sentence of the record in this language where it is known, else as the record has it.
    pub(crate) fn known(&self, english: &str) -> String {
        match self.lang {
            Lang::En => None,
            Lang::ZhCn => known::in_chinese(english),
        }
        .unwrap_or_else(|| english.to_owned())
    }

    fn format(&self, key: &str, args: Option<&FluentArgs<'_>>) -> String {
        let pattern = self.bundle.get_message(key).and_then(|message| message.value());
        let mut errors = Vec::new();
        let text = pattern.map_or(Cow::Borrowed(key), |pattern| self.bundle.format_pattern(pattern, args, &mut errors));
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(source: &str) -> Vec<&str> {
        let named = source.lines().filter(|line| !line.starts_with(['#', ' ']));
        let mut keys: Vec<&str> = named.filter_map(|line| line.split_once(" = ").map(|(key, _)| key)).collect();
        keys.sort_unstable();
        keys
    }

    fn variables(line: &str) -> Vec<&str> {
        let mut names: Vec<&str> = line.split("{ $").skip(1).filter_map(|rest| rest.split(" }").next()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn both_languages_have_the_same_texts_with_the_same_variables() {
        let (en, zh) = (include_str!("../locales/en.ftl"), include_str!("../locales/zh-CN.ftl"));
        assert_eq!(keys(en), keys(zh));
        for key in keys(en) {
            let of = |source: &'static str| source.lines().find(|line| line.starts_with(&format!("{key} = "))).map(variables);
            assert_eq!(of(en), of(zh), "variables of `{key}`");
        }
    }

    #[test]
    fn every_text_is_used_and_every_used_text_exists() {
        let sources = [
            include_str!("run/page.rs"),
            include_str!("run/item.rs"),
            include_str!("run/look.rs"),
            include_str!("run/terminal.rs"),
            include_str!("inspection/page.rs"),
            include_str!("inspection/terminal.rs"),
            include_str!("words.rs"),
            include_str!("../templates/item.html"),
            include_str!("../templates/run.html"),
            include_str!("../templates/inspection.html"),
        ]
        .concat();
        for key in keys(include_str!("../locales/en.ftl")) {
            assert!(sources.contains(&format!("\"{key}\"")), "`{key}` is not used");
        }
        for used in sources.split("t.get(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(keys(include_str!("../locales/en.ftl")).contains(&used), "`{used}` has no text");
        }
    }

    #[test]
    fn variables_are_filled_in() {
        assert_eq!(Texts::new(Lang::En).with("at-least", &[("number", &0.85)]), "at least 0.85");
        assert_eq!(Texts::new(Lang::ZhCn).with("at-least", &[("number", &0.85)]), "不低于 0.85");
    }
}
