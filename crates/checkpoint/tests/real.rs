//! The real models of `make models`, in the folder that GLASSBOX_MODELS names (`make test-real`).

use std::path::PathBuf;

use glassbox_checkpoint::{Checkpoint, GgufTokenizer, TokenizerSource};

fn open(file: &str) -> Checkpoint {
    let folder = std::env::var_os("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder that `make models` filled");
    Checkpoint::open(PathBuf::from(folder).join(file)).expect("a complete model")
}

fn tokenizer(checkpoint: &Checkpoint) -> GgufTokenizer {
    match checkpoint.tokenizer_source().expect("a complete tokenizer") {
        TokenizerSource::Gguf(tokenizer) => tokenizer,
        other => panic!("{other:?}"),
    }
}

/// Storage type and number of tensors, the largest share first.
fn shares(checkpoint: &Checkpoint) -> Vec<(String, usize)> {
    checkpoint.storage_shares().into_iter().map(|share| (share.storage, share.tensors)).collect()
}

fn expected(shares: &[(&str, usize)]) -> Vec<(String, usize)> {
    shares.iter().map(|(storage, tensors)| ((*storage).to_owned(), *tensors)).collect()
}

#[test]
fn gemma_opens_with_the_tensors_and_the_vocabulary_that_the_gguf_package_reads() {
    let checkpoint = open("gemma-3-270m-q4_k_m.gguf");
    assert_eq!(shares(&checkpoint), expected(&[("Q8_0", 10), ("Q5_0", 81), ("Q4_K", 27), ("Q6_K", 9), ("F32", 109)]));
    assert_eq!(checkpoint.shape("token_embd.weight"), Some(&[262_144, 640][..]));
    assert_eq!(checkpoint.content_hash(), "cae8a85634ad6b98b9bd58f4d2ba2ed053f51a3b71ff3d7ca8644b2db1c1fad3");
    let tokenizer = tokenizer(&checkpoint);
    assert_eq!((tokenizer.model.as_str(), tokenizer.tokens.len(), tokenizer.bos, tokenizer.eos), ("llama", 262_144, Some(2), Some(1)));
    assert_eq!((tokenizer.add_bos, tokenizer.add_space_prefix), (Some(true), Some(false)));
    assert!(tokenizer.chat_templates.is_empty());
}

#[test]
fn qwen_opens_with_the_tensors_and_the_vocabulary_that_the_gguf_package_reads() {
    let checkpoint = open("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    assert_eq!(shares(&checkpoint), expected(&[("Q5_0", 133), ("Q8_0", 13), ("Q6_K", 12), ("Q4_K", 12), ("F32", 121)]));
    assert_eq!(checkpoint.shape("output.weight"), Some(&[151_936, 896][..]));
    assert_eq!(checkpoint.content_hash(), "e910cab26ae116eb714dbce67c63250cc836a65f26db4b3452fde909aa55f7ba");
    let tokenizer = tokenizer(&checkpoint);
    assert_eq!((tokenizer.model.as_str(), tokenizer.pre.as_deref(), tokenizer.tokens.len()), ("gpt2", Some("qwen2"), 151_936));
    assert_eq!(tokenizer.merges.as_ref().map(glassbox_checkpoint::Strings::len), Some(151_387));
    assert_eq!((tokenizer.chat_templates.len(), tokenizer.add_bos), (1, Some(false)));
}

#[test]
fn a_real_file_is_refused_wherever_it_is_cut() {
    let checkpoint = open("gemma-3-270m-q4_k_m.gguf");
    let whole = glassbox_tensor::Bytes::new(std::fs::read(checkpoint.path().expect("a file")).expect("readable"));
    for len in (0..2_000).chain((2_000..whole.len()).step_by(4_000_037)) {
        let cut = whole.slice(0..len).expect("shorter than the whole");
        assert!(Checkpoint::from_gguf_bytes("cut.gguf", cut).is_err(), "accepted when cut to {len} bytes");
    }
}
