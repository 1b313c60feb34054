//! Continuations: where the border lies, and what happens to a token across it.

use glassbox_text::{Continuation, Error, Specials, Tokenizer};
use proptest::prelude::*;

use crate::support::{TOKENIZERS, from_json};

fn of(tokenizer: &Tokenizer, context: &str, continuation: &str) -> Continuation {
    Continuation::new(tokenizer, context, continuation, Specials::Literal).expect("a continuation")
}

/// The text of the tokens, without a BOS that nothing in the text stands for.
fn text(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let ids: Vec<u32> = ids.iter().copied().filter(|id| Some(*id) != tokenizer.bos_id()).collect();
    tokenizer.decode(&ids)
}

/// Two texts that this tokenizer reads as one token.
fn merged(tokenizer: &Tokenizer) -> (String, String) {
    let whole = ["the", "an", "he", "er", "in", "on"].into_iter().find(|text| {
        tokenizer.encode(text, Specials::Literal).is_ok_and(|ids| ids.len() == 1) // a short word of the training text
    });
    let whole = whole.expect("some of the commonest pairs are tokens");
    (whole[..1].to_owned(), whole[1..].to_owned())
}

#[test]
fn a_token_across_the_border_is_cut_and_flagged_and_never_leaves_a_continuation_without_tokens() {
    let mut cut = 0;
    for name in TOKENIZERS {
        let tokenizer = from_json(name);
        let (context, continuation) = merged(&tokenizer);
        let read = of(&tokenizer, &context, &continuation);
        let alone = of(&tokenizer, "", &[context.as_str(), &continuation].concat());
        assert_eq!(alone.continuation().len(), 1, "{name}: `{context}{continuation}` is one token");
        assert!(read.is_apart, "{name}");
        assert!(!read.continuation().is_empty() && read.start > 0, "{name}: {read:?}");
        assert_eq!(text(&tokenizer, read.continuation()).trim_start(), continuation, "{name}");
        cut += 1;
    }
    assert_eq!(cut, TOKENIZERS.len());
}

#[test]
fn white_space_at_the_end_of_the_context_belongs_to_the_continuation() {
    for name in TOKENIZERS {
        let tokenizer = from_json(name);
        assert_eq!(of(&tokenizer, "Answer: ", "the"), of(&tokenizer, "Answer:", " the"), "{name}");
        assert!(!of(&tokenizer, "Answer: ", "the").is_apart, "{name}");
    }
}

#[test]
fn an_empty_context_leaves_the_bos_alone_before_the_text() {
    for name in TOKENIZERS {
        let tokenizer = from_json(name);
        let read = of(&tokenizer, "", "the cat");
        let prompt = tokenizer.encode_prompt("the cat", Specials::Literal).expect("a prompt");
        assert_eq!(read.ids, prompt, "{name}");
        assert_eq!(read.start, prompt.iter().take_while(|id| Some(**id) == tokenizer.bos_id()).count(), "{name}");
    }
}

#[test]
fn an_empty_continuation_is_refused() {
    let tokenizer = from_json("gpt2");
    let refused = Continuation::new(&tokenizer, "a context", "", Specials::Literal);
    assert!(matches!(refused, Err(Error::Request { .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_tokens_after_the_border_are_the_continuation(context in "[a-zé漢 .]{0,12}", continuation in "[a-zé漢 .]{1,12}") {
        for name in TOKENIZERS {
            let tokenizer = from_json(name);
            let read = of(&tokenizer, &context, &continuation);
            let moved = &context[context.trim_end().len()..];
            let wanted = [moved, &continuation].concat();
            let found = text(&tokenizer, read.continuation());
            // A tokenizer that puts a space before a text puts one before a context that is empty.
            prop_assert_eq!(found.trim_start(), wanted.trim_start(), "{} {:?}", name, read);
            prop_assert!(read.start < read.ids.len());
        }
    }
}
