//! The help in the reader's language: English stands beside the arguments, other languages in `locales/`.

use clap::{Arg, ArgAction, Command, CommandFactory};
use fluent_bundle::{FluentBundle, FluentResource};

use crate::args::Args;

/// The command line with its help in the language that `GLASSBOX_LANG` names; English for a language without texts.
pub(crate) fn command(lang: Option<&str>) -> Command {
    let command = with_negative_numbers(Args::command());
    match lang.map(str::parse) {
        Some(Ok(glassbox_report::Lang::ZhCn)) => translated(command, &Texts::chinese()),
        _ => command,
    }
}

/// Lets every value be a negative number: what is wrong with it is better said by name than as an unexpected argument.
fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// A text of a command's output in the reader's language: that of `key`, or `english`.
pub(crate) fn text(lang: glassbox_report::Lang, key: &str, english: &str) -> String {
    let found = match lang {
        glassbox_report::Lang::En => None,
        glassbox_report::Lang::ZhCn => Texts::chinese().get(key),
    };
    found.unwrap_or_else(|| english.to_owned())
}

fn translated(command: Command, texts: &Texts) -> Command {
    let name = command.get_name().to_owned();
    let is_main = command.get_version().is_some();
    let flag = |id: &'static str, short: char, action: ArgAction| {
        let help = texts.get(&format!("arg-{id}")).unwrap_or_default();
        Arg::new(id).short(short).long(id).action(action).help(help)
    };
    let mut template = "{about-with-newline}\n用法：{usage}\n\n".to_owned();
    if command.get_positionals().next().is_some() {
        template.push_str("参数：\n{positionals}\n\n");
    }
    if command.has_subcommands() {
        template.push_str("命令：\n{subcommands}\n\n");
    }
    template.push_str("选项：\n{options}{after-help}");
    let mut command = command
        .disable_help_flag(true)
        .arg(flag("help", 'h', ArgAction::Help))
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .help_template(template)
        .mut_args(|arg| {
            let id = arg.get_id().to_string();
            match texts.of_argument(&name, &id) {
                Some(text) => arg.help(text),
                None => arg,
            }
        })
        .mut_subcommands(|command| translated(command, texts));
    if is_main {
        command = command.arg(flag("version", 'V', ArgAction::Version));
    }
    if let Some(about) = texts.get(&format!("cmd-{name}")) {
        command = command.about(about);
    }
    match texts.get(&format!("cmd-{name}-examples")) {
        Some(examples) => command.after_long_help(examples),
        None => command,
    }
}

/// The texts of one language.
struct Texts(FluentBundle<FluentResource>);

impl Texts {
    fn chinese() -> Self {
        let resource = FluentResource::try_new(CHINESE.to_owned()).unwrap_or_else(|(valid, _)| valid);
        let mut bundle = FluentBundle::new(Vec::new());
        bundle.add_resource_overriding(resource);
        Self(bundle)
    }

    fn get(&self, key: &str) -> Option<String> {
        let pattern = self.0.get_message(key)?.value()?;
        Some(self.0.format_pattern(pattern, None, &mut Vec::new()).into_owned())
    }

    fn of_argument(&self, command: &str, id: &str) -> Option<String> {
        self.get(&key_of_argument(command, id)).or_else(|| self.get(&format!("arg-{id}")))
    }
}

const CHINESE: &str = include_str!("../locales/zh-CN.ftl");

fn key_of_argument(command: &str, id: &str) -> String {
    format!("cmd-{command}-{id}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keys() -> BTreeSet<&'static str> {
        CHINESE.lines().filter(|line| !line.starts_with(['#', ' '])).filter_map(|line| line.split_once(" =").map(|(key, _)| key)).collect()
    }

    /// Every text that the English help of `command` has, by the key of its translation.
    fn wanted(command: &Command, keys: &BTreeSet<&str>) -> BTreeSet<String> {
        let name = command.get_name();
        let mut wanted = BTreeSet::from([format!("cmd-{name}")]);
        if command.get_after_long_help().is_some() {
            wanted.insert(format!("cmd-{name}-examples"));
        }
        for id in command.get_arguments().map(|arg| arg.get_id().as_str()) {
            let own = key_of_argument(name, id);
            wanted.insert(if keys.contains(own.as_str()) { own } else { format!("arg-{id}") });
        }
        wanted.extend(command.get_subcommands().flat_map(|command| self::wanted(command, keys)));
        wanted
    }

    #[test]
    fn every_english_text_has_a_chinese_one_and_none_is_left_over() {
        let keys = keys();
        let mut english = Args::command();
        english.build();
        // `build` copies the whole tree below each `help` command; those show no text of their own.
        let mut wanted = wanted(&english, &keys);
        wanted.extend(crate::commands::bench::growth::text_keys());
        wanted.extend(crate::commands::evidence::text_keys());
        let keys: BTreeSet<String> = keys.into_iter().map(str::to_owned).collect();
        assert_eq!(wanted.difference(&keys).collect::<Vec<_>>(), Vec::<&String>::new(), "without a Chinese text");
        assert_eq!(keys.difference(&wanted).collect::<Vec<_>>(), Vec::<&String>::new(), "of no use");
    }

    #[test]
    fn both_command_lines_are_sound() {
        command(None).debug_assert();
        command(Some("zh-CN")).debug_assert();
    }

    #[test]
    fn a_language_without_texts_is_english() {
        let about = |lang| command(lang).get_about().map(ToString::to_string);
        assert_eq!(about(Some("fr")), about(None));
        assert_ne!(about(Some("zh-CN")), about(None));
    }
}
