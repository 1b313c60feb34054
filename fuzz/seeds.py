"""Makes the seed corpora in seeds/ from the fixtures of the repository: one small file each, deterministic.

    python3 seeds.py
"""

import json
import pathlib
import re
import shutil
import struct

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent


def write(target, name, data):
    folder = HERE / "seeds" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def pack(form, *values):
    return struct.pack("<" + form, *values)


def text(value):
    data = value.encode()
    return pack("Q", len(data)) + data


def kv(key, value):
    if isinstance(value, bool):
        return text(key) + pack("I?", 7, value)
    if isinstance(value, int):
        return text(key) + pack("II", 4, value)
    if isinstance(value, float):
        return text(key) + pack("If", 6, value)
    if isinstance(value, str):
        return text(key) + pack("I", 8) + text(value)
    if value and isinstance(value[0], str):
        return text(key) + pack("IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    kind, form = (6, "f") if isinstance(value[0], float) else (5, "i")
    return text(key) + pack("IIQ", 9, kind, len(value)) + b"".join(pack(form, one) for one in value)


def gguf(keys, tensors, version=3, alignment=32):
    """tensors: name -> (dimensions, type, bytes)"""
    head = b"GGUF" + pack("IQQ", version, len(tensors), len(keys)) + b"".join(kv(*pair) for pair in keys.items())
    offset, data = 0, b""
    for name, (dimensions, kind, values) in tensors.items():
        head += text(name) + pack("I", len(dimensions)) + b"".join(pack("Q", d) for d in dimensions) + pack("IQ", kind, offset)
        values += bytes(-len(values) % alignment)
        data += values
        offset += len(values)
    return head + bytes(-len(head) % alignment) + data


def floats(*dimensions):
    count = 1
    for dimension in dimensions:
        count *= dimension
    return (list(dimensions), 0, b"".join(pack("f", 0.01 * (i % 7 - 3)) for i in range(count)))


def header_of(file):
    """A GGUF file up to its tensor data: the padding before them belongs to the data."""
    data, at = file.read_bytes(), 8
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def skip(kind):
        nonlocal at
        if kind == 8:
            length = take("Q")
            at += length
        elif kind == 9:
            element, count = take("I"), take("Q")
            for _ in range(count):
                skip(element)
        else:
            at += sizes[kind]

    tensors, keys = take("Q"), take("Q")
    for _ in range(keys):
        skip(8)
        skip(take("I"))
    for _ in range(tensors):
        skip(8)
        dimensions = take("I")
        at += 8 * dimensions + 4 + 8
    return data[:at]


def safetensors(tensors):
    """tensors: name -> (shape, bytes), all F32"""
    entries, data = {}, b""
    for name, (shape, values) in tensors.items():
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    header = compact(entries)
    header += b" " * (-len(header) % 8)
    return pack("Q", len(header)) + header + data


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def vocabulary(name):
    metadata = json.loads((ROOT / f"crates/text/fixtures/tokenizers/{name}/gguf.json").read_text())
    size = 40 if metadata["model"] == "gpt2" else len(metadata["tokens"])  # byte-level vocabularies start with the bytes
    size = max(size, 300)
    tokens = metadata["tokens"][:size]
    keys = {
        "tokenizer.ggml.model": metadata["model"],
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": metadata["token_types"][:size],
        "tokenizer.ggml.bos_token_id": min(metadata["bos"] or 0, size - 1),
        "tokenizer.ggml.add_bos_token": True,
    }
    if metadata["model"] == "gpt2":
        keys["tokenizer.ggml.pre"] = metadata["pre"]
        keys["tokenizer.ggml.merges"] = [m for m in metadata["merges"] if m.replace(" ", "") in tokens][:20] or ["a b"]
    else:
        keys["tokenizer.ggml.scores"] = [float(score) for score in metadata["scores"][:size]]
    return keys


def llama():
    d, hidden, vocab = 8, 16, 5
    keys = {
        "general.architecture": "llama", "llama.block_count": 1, "llama.embedding_length": d, "llama.feed_forward_length": hidden,
        "llama.attention.head_count": 2, "llama.attention.head_count_kv": 1, "llama.context_length": 16, "llama.vocab_size": vocab,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.dimension_count": 4, "llama.rope.freq_base": 10000.0,
    }
    tensors = {"token_embd.weight": floats(d, vocab), "output.weight": floats(d, vocab), "output_norm.weight": floats(d)}
    shapes = {
        "attn_norm": [d], "attn_q": [d, d], "attn_k": [d, 4], "attn_v": [d, 4], "attn_output": [d, d],
        "ffn_norm": [d], "ffn_gate": [d, hidden], "ffn_up": [d, hidden], "ffn_down": [hidden, d],
    }
    tensors |= {f"blk.0.{name}.weight": floats(*shape) for name, shape in shapes.items()}
    return keys, tensors


def folder():
    """A Llama of one layer in two shards, with the tokenizer of the GPT-2 fixture: file name -> bytes"""
    d, hidden, kv_width, vocab = 8, 16, 4, 426  # the vocabulary has 420 tokens and 6 added ones
    fixture = ROOT / "crates/text/fixtures/tokenizers/gpt2"
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": d, "intermediate_size": hidden, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": d // 2, "vocab_size": vocab, "max_position_embeddings": 16,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "eos_token_id": [0, 1],
    }
    block = {
        "input_layernorm": [d], "self_attn.q_proj": [d, d], "self_attn.k_proj": [kv_width, d], "self_attn.v_proj": [kv_width, d],
        "self_attn.o_proj": [d, d], "post_attention_layernorm": [d], "mlp.gate_proj": [hidden, d], "mlp.up_proj": [hidden, d],
        "mlp.down_proj": [d, hidden],
    }
    shapes = {
        "model-00001-of-00002.safetensors": {"model.embed_tokens.weight": [vocab, d], "model.norm.weight": [d]},
        "model-00002-of-00002.safetensors": {f"model.layers.0.{name}.weight": shape for name, shape in block.items()},
    }
    shards = {shard: safetensors({name: (shape, floats(*shape)[2]) for name, shape in of.items()}) for shard, of in shapes.items()}
    index = {"metadata": {"total_size": 1}, "weight_map": {name: shard for shard, of in shapes.items() for name in of}}
    template = json.loads((fixture / "tokenizer_config.json").read_text())["chat_template"]
    tokenizer_config = {"eos_token": "<|im_end|>", "pad_token": {"content": "<|im_end|>"}, "add_bos_token": False,
                        "chat_template": [{"name": "default", "template": "{{ messages[0].content }}"}, {"name": "tool_use", "template": "t"}]}
    return {
        "config.json": compact(config), "model.safetensors.index.json": compact(index), **shards,
        "tokenizer.json": compact(json.loads((fixture / "tokenizer.json").read_text())),
        "tokenizer_config.json": compact(tokenizer_config), "special_tokens_map.json": compact({"eos_token": "<|im_end|>"}),
        "generation_config.json": compact({"bos_token_id": 0, "eos_token_id": [0, 1], "pad_token_id": None}),
        "chat_template.jinja": template.encode(),
    }


BLOCKS = {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 20: (32, 18), 39: (32, 17), 1: (1, 2), 30: (1, 2),
          10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 23: (256, 136)}


def tiny(table):
    """Names of the tiny models in a table of src/tiny.rs; the index of a name is the first byte of its seed."""
    return re.findall(r'"([\w-]+)"', re.search(table + r".*?!\[.*?\];", (HERE / "src/tiny.rs").read_text(), re.S).group())


def main():
    shutil.rmtree(HERE / "seeds", ignore_errors=True)
    keys, tensors = llama()
    write("gguf", "llama", gguf(keys, tensors))
    types = {f"t{kind}": ([size * 2], kind, bytes(range(1, 1 + 2)) * nbytes) for kind, (size, nbytes) in BLOCKS.items()}
    write("gguf", "types", gguf({}, types))
    write("gguf", "part", gguf({"split.no": 0, "split.count": 2, "split.tensors.count": 2}, {"a": floats(4)}))
    write("gguf", "aligned", gguf({"general.alignment": 64}, {"a": floats(4, 2), "b": floats(3)}, version=2, alignment=64))
    for name in ["gpt2", "llama2"]:
        write("gguf", f"tokenizer-{name}", gguf({"general.architecture": "llama"} | vocabulary(name), {}))

    entry = '{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}'
    header = '{"__metadata__":{"format":"pt"},"a":%s,"b":%s,"c":%s}' % (
        entry % ("F32", "[2,1]", 0, 8), entry % ("BF16", "[2]", 8, 12), entry % ("F16", "[]", 12, 14))
    write("safetensors", "three", pack("Q", len(header)) + header.encode() + b"\x3c" * 14)
    odd = '{"k":%s,"e":%s} ' % (entry % ("I64", "[1]", 0, 8), entry % ("F32", "[0]", 8, 8))
    write("safetensors", "odd", pack("Q", len(odd)) + odd.encode() + bytes(8))
    write("safetensors", "empty", pack("Q", 2) + b"{}")

    split = lambda number: {"split.no": number, "split.count": 2, "split.tensors.count": len(tensors)}
    halves = [dict(list(tensors.items())[:4]), dict(list(tensors.items())[4:])]
    write("parts", "first", b"\0" + gguf(keys | split(0), halves[0]))
    write("parts", "second", b"\1" + gguf(split(1), halves[1]))

    wide = {"wide": floats(256, 2), "odd": floats(7, 3), "row": floats(5)}
    for index, name in enumerate(["f16", "q8_0", "q4_0", "q4_k", "q6_k", "int8", "int4"]):
        write("quantize", name, bytes([index]) + gguf({"general.architecture": "llama"}, wide))
    write("quantize", "llama", b"\0" + gguf(keys, tensors))
    readable = {name: tensor for name, tensor in types.items() if name != "t23"}  # IQ4_XS is told apart, not read
    write("quantize", "types", b"\1" + gguf({"general.file_type": 7, "general.alignment": 32}, readable))
    write("quantize", "tokenizer", b"\0" + gguf({"general.architecture": "llama"} | vocabulary("llama2"), {"a": floats(32)}))

    for index, (name, data) in enumerate(folder().items()):
        write("folder", name, bytes([index]) + data)

    for index, name in enumerate(tiny("CONFIGS")):
        write("config", name, bytes([index]) + (ROOT / f"fixtures/tiny/{name}/config.json").read_bytes())
    for index, name in enumerate(tiny("GGUF_FILES")):
        write("metadata", name, bytes([index]) + header_of(ROOT / f"fixtures/tiny/{name}/model.gguf"))

    for name in ["tokenizers/gpt2", "tokenizers/llama3", "tokenizers/qwen2", "tokenizers/llama2", "tokenizers/gemma", "words/uncased"]:
        whole = json.loads((ROOT / f"crates/text/fixtures/{name}/tokenizer.json").read_text())
        write("tokenizer", name.split("/")[1], json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
    small = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": {"type": "NFC"},
        "added_tokens": [{"id": 3, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}|\\s+(?!\\S)"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": True, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
    }
    write("tokenizer", "small", json.dumps(small, separators=(",", ":")).encode())

    cases = json.loads((ROOT / "crates/text/fixtures/templates.json").read_text())["cases"]
    for index, template in enumerate(sorted({case["template"] for case in cases}, key=lambda t: (len(t), t))):
        write("template", f"{index:02}", template.encode())

    for suite in sorted((ROOT / "suites").glob("*.yaml")):
        write("suite", suite.stem, suite.read_bytes())

    for lang in ["en", "zh"]:
        lines = (ROOT / f"suites/data/evidence.{lang}.jsonl").read_bytes().splitlines()[:6]
        write("data", lang, b"".join(line + b"\n" for line in lines))

    record = ROOT / "crates/record/tests/old/v1"
    for index, name in enumerate(["manifest.json", "plan.jsonl", "trials.jsonl", "looks.jsonl", "scores.jsonl", "verdicts.json"]):
        whole = (record / name).read_bytes()
        few = whole if name.endswith(".json") else b"".join(line + b"\n" for line in whole.splitlines()[:3])
        write("record", name, bytes([index]) + few)


main()
