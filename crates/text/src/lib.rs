//! Tokenizer, chat template, named spans of a prompt, byte-true display.
