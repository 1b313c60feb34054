"""transformers with sdpa attention on a folder of safetensors; the same conversation as llama_peer.py, for prompts at depth 0.

A repetition is one forward pass over the whole prompt with an empty cache, the logits of the last token only.
`--make` writes the model: the Llama architecture with 109.5 million random weights, in a storage type of its choice.
"""

import argparse
import json
import random
import resource
import sys
import time

import torch
import transformers


def make(folder, dtype):
    config = transformers.LlamaConfig(
        hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=12,
        vocab_size=32000, max_position_embeddings=4096, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
    )
    torch.manual_seed(1)
    transformers.LlamaForCausalLM(config).to(dtype).save_pretrained(folder)


def open_model(folder, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").eval()


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True, help="numbers to compute with")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--make", action="store_true")
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)
    if options.make:
        return make(options.folder, dtype)
    torch.set_num_threads(options.threads)
    model = open_model(options.folder, dtype)
    numbers = random.Random(1)
    prepared = None
    print(json.dumps({"ready": f"transformers {transformers.__version__}, torch {torch.__version__}"}), flush=True)

    def run(tokens):
        ids = torch.tensor([[numbers.randrange(model.config.vocab_size) for _ in range(tokens)]])
        start = time.perf_counter(), time.process_time()
        model(ids, use_cache=True, logits_to_keep=1)
        return time.perf_counter() - start[0], time.process_time() - start[1]

    for line in sys.stdin:
        name = line.strip()
        if not name.startswith("pp") or "@" in name:
            sys.exit(f"only prompts at depth 0 are measured here, not {name}")
        tokens = int(name[2:])
        if prepared != name:
            run(tokens)
            prepared = name
        seconds, processor_seconds = run(tokens)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer = {"test": name, "seconds": seconds, "processor_seconds": processor_seconds, "tokens_per_second": tokens / seconds}
        print(json.dumps(answer | {"peak_resident_bytes": peak}), flush=True)


if __name__ == "__main__":
    main()
