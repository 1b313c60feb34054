"""Builds the specimen's byte-level BPE tokenizer in Hugging Face form.

Merges are learned in three stages, so that text never splits in surprising places:

1. UTF-8 bytes to characters, for every Chinese character of the world;
2. Chinese characters to the world's words;
3. English letters to words, by ordinary BPE (most frequent pair first, ties by code order),
   until every name and value of the world is one token.

Any other text still encodes, byte by byte if need be.

    python tokenizer.py OUT_DIR
"""

import json
import re
import sys
from collections import Counter

import world

SPECIALS = ["<|pad|>", "<|bos|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]

CHAT_TEMPLATE = (
    "{{ '<|bos|>' }}"
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('unknown role: ' + message['role']) }}"
    "{% endif %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

CHINESE_WORDS = "资料 问题 来源 记录 什么 哪个 负责 说明书 根据 编号 注明 请问 告诉 目前 外壳 服务 主要 制成 写成 出售 属于 标记 订单 请记住 备注 不知道 好的 你好 谢谢 不客气 早上好 政府 位于 设在 客服 事实 简短 回答 回复".split()


def byte_symbols():
    """The usual printable stand-in character for each of the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, spare = {}, 256
    for byte in range(256):
        if byte in printable:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(spare)
            spare += 1
    return table


BYTE_SYMBOL = byte_symbols()


def symbols(text):
    return [BYTE_SYMBOL[b] for b in text.encode("utf-8")]


class Merges:
    """A growing merge table, applied to the words it was given."""

    def __init__(self):
        self.pairs = []

    def add(self, left, right):
        if (left, right) not in self.pairs:
            self.pairs.append((left, right))

    def join(self, pieces, pair):
        joined, i = [], 0
        while i < len(pieces):
            if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
                joined.append(pieces[i] + pieces[i + 1])
                i += 2
            else:
                joined.append(pieces[i])
                i += 1
        return joined

    def learn(self, words, until):
        """Ordinary BPE on {word: (pieces, weight)} until every word in `until` is one piece."""
        words = dict(words)
        while any(len(words[word][0]) > 1 for word in until):
            counts = Counter()
            for pieces, weight in words.values():
                for pair in zip(pieces, pieces[1:]):
                    counts[pair] += weight
            best = max(counts.values())
            pair = min(p for p, n in counts.items() if n == best)
            self.add(*pair)
            words = {w: (self.join(pieces, pair), weight) for w, (pieces, weight) in words.items()}


def sentences(lang):
    """Every fixed text of the world, without names and values."""
    yield from (s for table in (world.STATEMENTS, world.QUESTIONS) for forms in table[lang].values() for s in forms)
    yield from (s for s in world.SYSTEMS[lang] if s)
    yield from world.DOCUMENT_HEADS[lang] + world.QUESTION_HEADS[lang] + world.REMARKS[lang]
    yield from (s for pair in world.SMALL_TALK[lang] for s in pair)
    yield from (world.UNKNOWN[lang], world.NOTED[lang])


def build():
    """(merges, vocabulary) of the tokenizer."""
    merges = Merges()

    # Stage 1: bytes to Chinese characters (and full-width punctuation).
    chinese_atoms = world.atoms("zh") + CHINESE_WORDS
    text = "".join(chinese_atoms) + re.sub(r"\{.\}", "", "".join(sentences("zh")))
    for char in sorted({c for c in text if ord(c) > 127}):
        first, second, third = symbols(char)
        merges.add(first, second)
        merges.add(first + second, third)

    # Stage 2: characters to words, left to right.
    for word in chinese_atoms:
        pieces = ["".join(symbols(char)) for char in word]
        while len(pieces) > 1:
            merges.add(pieces[0], pieces[1])
            pieces = [pieces[0] + pieces[1]] + pieces[2:]

    # Stage 3: English words with the space before them.
    wanted = world.atoms("en")
    plain = Counter(re.findall(r" ?[A-Za-z]+", re.sub(r"\{.\}", "", "\n".join(sentences("en")))))
    plain += Counter({" " + word: count for word, count in plain.items() if word[0] != " "})  # sentences follow "[1]" and "Question:"
    words = {word: (symbols(word), plain[word]) for word in plain}
    words |= {word: (symbols(word), 1) for word in wanted}
    merges.learn(words, [*wanted, *plain])

    tokens = SPECIALS + [BYTE_SYMBOL[b] for b in range(256)]
    known = set(tokens)
    for left, right in [*merges.pairs, (BYTE_SYMBOL[0x20], "[")]:
        if left + right not in known:
            known.add(left + right)
            tokens.append(left + right)
    merges.add(BYTE_SYMBOL[0x20], "[")  # " [" opens a citation
    return merges.pairs, {token: i for i, token in enumerate(tokens)}


def tokenizer_json():
    merges, vocabulary = build()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for i, token in enumerate(SPECIALS)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocabulary, "merges": [f"{left} {right}" for left, right in merges],
        },
    }


def write(directory):
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "bos_token": "<|bos|>", "eos_token": "<|end|>", "pad_token": "<|pad|>",
        "additional_special_tokens": ["<|system|>", "<|user|>", "<|assistant|>"],
        "add_bos_token": False, "add_eos_token": False, "add_prefix_space": False, "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    for name, content in (("tokenizer.json", tokenizer_json()), ("tokenizer_config.json", config)):
        with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.write("\n")


def check(directory):
    """Assert what the recipe relies on, over sampled cases of the world."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")
    for lang in world.LANGUAGES:
        for atom in world.atoms(lang):
            assert len(tokenizer.encode(atom).ids) == 1, atom
    for split in ("train", "test"):
        sampler = world.Sampler(1, split)
        for _ in range(3000):
            lang = sampler.rng.choice(world.LANGUAGES)
            for fact in sampler.facts(lang, 2) + [sampler.fact(lang, "capital", sampler.rng.choice(world.NAMES[lang]["country"]))]:
                if fact:
                    ids = tokenizer.encode(" " + fact.text if lang == "en" else fact.text).ids
                    for name in (fact.entity, fact.value):
                        (piece,) = tokenizer.encode(" " + name if lang == "en" else name).ids
                        assert piece in ids, (fact, name)
                        assert ids.count(piece) == 1, (fact, name)
    for text in ("plain \n\n text  with 42 digits", "表情 😀👩‍👧 ñ ß \t", "\u0000\uffff"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text, text
    return tokenizer


if __name__ == "__main__":
    write(sys.argv[1])
    tokenizer = check(sys.argv[1])
    print("vocabulary", tokenizer.get_vocab_size())
