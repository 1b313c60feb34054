"""Makes the seed corpora in seeds/ from the fixtures of the repository: one small file each, deterministic.

    python3 seeds.py
"""

import json
import pathlib
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


BLOCKS = {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 20: (32, 18), 39: (32, 17), 1: (1, 2), 30: (1, 2),
          10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 23: (256, 136)}


def main():
    shutil.rmtree(HERE / "seeds", ignore_errors=True)
    keys, tensors = llama()
    write("gguf", "llama", gguf(keys, tensors))
    write("gguf", "types", gguf({}, {f"t{kind}": ([size * 2], kind, bytes(range(1, 1 + 2)) * nbytes) for kind, (size, nbytes) in BLOCKS.items()}))
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

    for index, name in enumerate(["gemma3-mqa", "gpt2", "llama-gqa", "llama-scaled", "qwen2-gqa", "qwen2-window"]):
        write("config", name, bytes([index]) + (ROOT / f"fixtures/tiny/{name}/config.json").read_bytes())

    for name in ["gpt2", "llama3", "qwen2", "llama2", "gemma"]:
        whole = json.loads((ROOT / f"crates/text/fixtures/tokenizers/{name}/tokenizer.json").read_text())
        write("tokenizer", name, json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
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

    folder = ROOT / "crates/record/tests/old/v1"
    for index, name in enumerate(["manifest.json", "plan.jsonl", "trials.jsonl", "looks.jsonl", "scores.jsonl", "verdicts.json"]):
        whole = (folder / name).read_bytes()
        few = whole if name.endswith(".json") else b"".join(line + b"\n" for line in whole.splitlines()[:3])
        write("record", name, bytes([index]) + few)


main()
