//! What is done with a file that could be read.

use glassbox_checkpoint::{Checkpoint, CheckpointError};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Encoder, Model, Rows};
use glassbox_quantize::{Target, quantize};
use glassbox_text::{ChatTemplate, Specials, TextSource, Tokenizer};

use crate::place::scratch;

/// Everything that a checkpoint tells: tensors decoded, none sharing bytes with another.
pub(crate) fn checkpoint(opened: Result<Checkpoint, CheckpointError>) {
    let checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let message = error.to_string();
            assert!(["model.gguf", "folder", "/"].iter().any(|label| message.starts_with(label)), "{message}");
            assert!(message.len() < 2_000, "a message of {} bytes", message.len());
            return;
        }
    };
    let mut ranges = Vec::new();
    let names: Vec<String> = checkpoint.tensor_names().map(str::to_owned).collect();
    for name in names {
        if let Ok(tensor) = checkpoint.require_tensor(&name) {
            assert_eq!(tensor.values().expect("an opened tensor decodes").len(), tensor.shape.iter().product::<usize>());
            ranges.push(tensor.bytes.as_ptr_range());
        }
    }
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "two tensors share bytes");
    let settings = checkpoint.settings();
    for key in ["general.architecture", "llama.block_count", "hidden_size", "rope_scaling"] {
        let _ = (settings.optional_str(key), settings.optional_usize(key), settings.optional_f64(key), settings.section(key));
        let _ = (settings.optional_str_list(key), settings.optional_usize_per_layer(key, 2));
    }
    let _ = (settings.finish(), checkpoint.tokenizer_source(), checkpoint.storage_shares(), checkpoint.content_hash());
}

/// Texts encoded and decoded, ids inside the vocabulary.
pub(crate) fn tokenizer(source: &TextSource) {
    let Ok(tokenizer) = Tokenizer::from_source(source) else { return };
    for text in
        ["", "Hello  world\n", "3333+777 I'VE <s> </s>", "a\u{301} \u{2029} 깰 👩‍👩‍👧", "<|im_end|>▁Ġ<0x0A>aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]
    {
        for specials in [Specials::Parse, Specials::Literal] {
            if let Ok(ids) = tokenizer.encode(text, specials) {
                assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()), "an id outside the vocabulary");
                let _ = (tokenizer.decode(&ids), tokenizer.decode_content(&ids), tokenizer.token_texts(&ids));
            }
        }
    }
    let _ = ChatTemplate::from_source(source, None);
}

/// Two tokens through the model, where there is one and its vocabulary has them.
pub(crate) fn model(checkpoint: &Checkpoint) {
    let workers = Workers::new(1);
    if let Ok(model) = Model::open(checkpoint, Kernels::Fast) {
        let Ok(mut cache) = model.new_cache(2, 1 << 20) else { return };
        let _ = model.forward(&[0, 1], &mut cache, Rows::Last, &workers);
    } else if let Ok(encoder) = Encoder::open(checkpoint, Kernels::Fast) {
        let _ = encoder.encode(&[0, 1], None, &workers);
    }
}

/// The model written again as GGUF, which must then be read again.
pub(crate) fn quantized(checkpoint: &Checkpoint, target: Target) {
    let out = scratch().join("quantized.gguf");
    if quantize(checkpoint, target, &out, 1, &mut |_, _, _| {}).is_ok() {
        let written = Checkpoint::open(&out).expect("a file that was written is read");
        assert_eq!(written.settings_hash().ok(), Some(written.content_hash()));
    }
}
