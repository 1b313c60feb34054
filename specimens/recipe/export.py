"""Writes a training checkpoint as a Hugging Face folder (weights in float16).

    python export.py --checkpoint RUN_DIR/checkpoint.pt --out ../specimen
"""

import argparse
import json

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

import plant
import tokenizer as tokenizer_builder
import world


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    tokenizer_builder.write(args.out)
    tokenizer = Tokenizer.from_file(f"{args.out}/tokenizer.json")
    saved = torch.load(args.checkpoint, weights_only=True)
    weights = {name: tensor.to(torch.float16).contiguous() for name, tensor in saved["model"].items() if name != "lm_head.weight"}
    assert all(tensor.isfinite().all() for tensor in weights.values())
    save_file(weights, f"{args.out}/model.safetensors", metadata={"format": "pt"})
    special = {name: tokenizer.token_to_id(f"<|{name}|>") for name in ("bos", "end", "pad")}
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float16", "torch_dtype": "float16",
        "vocab_size": tokenizer.get_vocab_size(), "hidden_size": plant.D_MODEL, "intermediate_size": plant.HIDDEN,
        "num_hidden_layers": plant.LAYERS, "num_attention_heads": plant.HEADS, "num_key_value_heads": plant.KV_HEADS,
        "head_dim": plant.D_HEAD, "hidden_act": "silu", "max_position_embeddings": 512, "rms_norm_eps": 1e-05,
        "rope_theta": plant.ROPE_THETA, "rope_scaling": None, "attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0,
        "tie_word_embeddings": True, "initializer_range": 0.02, "use_cache": True,
        "bos_token_id": special["bos"], "eos_token_id": special["end"], "pad_token_id": special["pad"],
    }
    generation = {"bos_token_id": special["bos"], "eos_token_id": special["end"], "pad_token_id": special["pad"], "do_sample": False, "max_new_tokens": 16}
    for name, content in (("config.json", config), ("generation_config.json", generation)):
        with open(f"{args.out}/{name}", "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
    world.dump(f"{args.out}/world.json")
    print("step", saved["step"], "parameters", sum(t.numel() for t in weights.values()))


if __name__ == "__main__":
    main()
