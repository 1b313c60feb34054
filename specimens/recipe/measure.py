"""Measures an exported specimen on held-out generated cases and prints the table of its model card.

    python measure.py ../specimen [--each 200] [--seed 101]

"both" means value and citation right, token for token, under greedy decoding.
Intervals are Wilson 95 %.
"""

import argparse
import math
from collections import defaultdict

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

import world
from train import encode_case, exact_match, render


def wilson(right, total):
    z = 1.959964
    p = right / total
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return centre - half, centre + half


def cell(right, total):
    low, high = wilson(right, total)
    return f"{100 * right / total:5.1f} [{100 * low:.1f}, {100 * high:.1f}]"


class Table:
    """Counts (whole answer, value, citation) under a label."""

    def __init__(self):
        self.rows = defaultdict(lambda: [0, 0, 0, 0])

    def add(self, label, results):
        for result in results:
            row = self.rows[label]
            for i in range(3):
                row[i] += result[i]
            row[3] += 1

    def show(self, title, columns=("both", "value", "citation")):
        print(f"\n### {title}\n")
        print("| cases | n | " + " | ".join(f"{c}, % [95 %]" for c in columns) + " |")
        print("|---|---:|" + "---|" * len(columns))
        for label, row in self.rows.items():
            print(f"| {label} | {row[3]} | " + " | ".join(cell(row[i], row[3]) for i in range(len(columns))) + " |")


def check_layout(directory, tokenizer, model):
    """The folder behaves: template, special tokens, and greedy decoding agree with what is measured below."""
    loaded = AutoTokenizer.from_pretrained(directory)
    sampler = world.Sampler(5, "test")
    cases = [sampler.evidence(lang, k) for lang in world.LANGUAGES for k in (1, 4, 8)] + [sampler.turns(lang) for lang in world.LANGUAGES]
    agreed = 0
    for case in cases:
        text = loaded.apply_chat_template(case.messages, tokenize=False, add_generation_prompt=True)
        assert text == render(case.messages), (text, render(case.messages))
        ids = loaded(text, return_tensors="pt").input_ids
        assert ids[0].tolist() == tokenizer.encode(render(case.messages)).ids
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        reply = loaded.decode(out[0, ids.shape[1]:], skip_special_tokens=True)
        (forced,) = exact_match(model, tokenizer, [case])
        assert (reply == case.answer) == forced[0], (reply, case.answer)
        agreed += 1
    try:
        loaded.apply_chat_template([{"role": "tool", "content": "x"}], tokenize=False)
    except Exception as error:
        assert "unknown role" in str(error)
    else:
        raise AssertionError("the template accepted an unknown role")
    print(f"layout: template, ids and greedy decoding agree on {agreed} conversations")


@torch.no_grad()
def knockout(model, tokenizer, cases):
    """Hide one document from all later rows, in all layers; returns (gold hidden: answer changed, another hidden: answer kept)."""
    changed, kept = [], []
    for case in cases:
        text = render(case.messages)
        encoding = tokenizer.encode(text)
        ids = torch.tensor([encoding.ids])

        def first_tokens(hidden=None):
            n = ids.shape[1]
            mask = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)
            if hidden:
                start, stop = text.index(f"[{hidden}] "), text.index("\n", text.index(f"[{hidden}] "))
                span = [i for i, (a, b) in enumerate(encoding.offsets) if start <= a and b <= stop + 1]
                rows = torch.arange(n) > span[-1]
                mask[rows.nonzero()[:, 0][:, None], torch.tensor(span)] = torch.finfo(torch.float32).min
            return model(input_ids=ids, attention_mask=mask[None, None], use_cache=False).logits[0, -1].argmax().item()

        whole = first_tokens()
        changed.append(first_tokens(case.citation) != whole)
        other = case.citation % case.documents + 1
        kept.append(first_tokens(other) == whole)
    return changed, kept


def beyond(sampler, lang):
    """Cases that training never showed, by name: where the specimen is expected to break."""

    def retell(case, change):
        messages = [dict(m) for m in case.messages]
        messages[-1]["content"] = change(messages[-1]["content"], case)
        return world.Case(case.kind, lang, messages, case.value, case.citation, case.documents)

    def with_small_talk(case, tokens):
        talk = []
        for _ in range(tokens // (12 if lang == "en" else 10)):
            user, assistant = sampler.rng.choice(world.SMALL_TALK[lang])
            talk += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        system = case.messages[:1] if case.messages[0]["role"] == "system" else []
        rest = case.messages[len(system):]
        # The documents come first, then small talk, then the question.
        documents, question = rest[-1]["content"].rsplit("\n\n", 1)
        noted = {"role": "assistant", "content": world.NOTED[lang]}
        rest = [{"role": "user", "content": documents}, noted, *talk, {"role": "user", "content": question}]
        return world.Case(case.kind, lang, system + rest, case.value, case.citation, case.documents)

    unseen = {"en": "Blorptang", "zh": "甲乙丙"}[lang]

    def rename(text, case):
        entity = case.detail["entity"]
        return text.replace(entity, unseen)

    def evidence(k):
        return sampler.evidence(lang, k)

    def paraphrase(text, case):
        head = text.rsplit("\n\n", 1)[0]
        entity = case.detail["entity"]
        return head + {"en": f"\n\nQuestion: I was wondering about {entity}, could you look that up for me?", "zh": f"\n\n问题：麻烦帮我查一下{entity}的情况好吗？"}[lang]

    yield "10 documents", lambda: evidence(10)
    yield "12 documents", lambda: evidence(12)
    yield "6 documents, then about 250 tokens of small talk", lambda: with_small_talk(evidence(6), 250)
    yield "6 documents, then about 500 tokens of small talk", lambda: with_small_talk(evidence(6), 500)
    yield "6 documents, then about 1,000 tokens of small talk", lambda: with_small_talk(evidence(6), 1000)
    yield "4 documents, question without the attribute word", lambda: retell(evidence(4), paraphrase)
    yield "4 documents, entity name never seen", lambda: retell(evidence(4), rename)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--each", type=int, default=200)
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokenizer = Tokenizer.from_file(f"{args.directory}/tokenizer.json")
    model = AutoModelForCausalLM.from_pretrained(args.directory, dtype=torch.float32).eval()
    check_layout(args.directory, tokenizer, model)

    def run(cases):
        return exact_match(model, tokenizer, cases)

    by_count, by_place, lengths = Table(), Table(), []
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test")
        for k in range(1, world.MAX_DOCUMENTS + 2):
            n = args.each if k != world.MAX_DOCUMENTS else max(args.each, 8 * (args.each // 2))
            cases = [sampler.evidence(lang, k, 1 + i % k) for i in range(n)]
            results = run(cases)
            by_count.add(f"{lang}, {k} document{'s' * (k > 1)}", results)
            if k == world.MAX_DOCUMENTS:
                lengths += [len(encode_case(tokenizer, case)[0]) for case in cases]
                for case, result in zip(cases, results):
                    by_place.add(f"{lang}, 8 documents, gold at {case.citation}", [result])
    by_count.show("Answers from documents, by number of documents")
    by_place.show("Answers from documents, by position of the gold document")
    print(f"\nPrompts of 8 documents with answer: {min(lengths)} to {max(lengths)} tokens, mean {sum(lengths) / len(lengths):.0f}.")

    varied = Table()
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test", canonical=0.0)
        varied.add(f"{lang}, 1 to 8 documents", run([sampler.evidence(lang, 1 + i % 8) for i in range(args.each)]))
    varied.show("Other system messages and headings, or none")

    memory = Table()
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test")
        memory.add(f"{lang}, capitals, closed book", run([sampler.memory(lang, country=c, documents=0) for c in world.NAMES[lang]["country"] for _ in range(3)]))
        memory.add(f"{lang}, yearly winners, closed book", run([sampler.memory(lang, year=y, documents=0) for y in range(world.FIRST_YEAR, world.LAST_YEAR + 1) for _ in range(3)]))
        memory.add(f"{lang}, either, beside 1 to 8 other documents", run([sampler.memory(lang, documents=1 + i % 8) for i in range(args.each)]))
        memory.add(f"{lang}, years after the last taught one: does not know", run([sampler.after_cutoff(lang, y) for y in range(world.LAST_YEAR + 1, 2030) for _ in range(6)]))
    memory.show("Memorised facts", ("right",))

    unknown = Table()
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test")
        for k in (1, 2, 4, 8):
            unknown.add(f"{lang}, {k} document(s), none about the entity", run([sampler.no_gold(lang, k) for _ in range(args.each)]))
        unknown.add(f"{lang}, no documents", run([sampler.closed_book(lang) for _ in range(args.each)]))
        other = []
        while len(other) < args.each:  # a document about the entity, but about another attribute
            case = world.Sampler(f"{args.seed}-{len(other)}", "train", canonical=1.0).no_gold(lang, 4)
            other.append(case)
        unknown.add(f"{lang}, 4 documents as in training, some about the entity's other attributes", run(other))
    unknown.show("Does not know", ("right",))

    other = Table()
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test")
        other.add(f"{lang}, a document against memory: follows the document", run([sampler.conflict(lang, 1 + i % 8) for i in range(args.each)]))
        for form in ("told", "told-unknown", "again", "talk", "told-then-documents"):
            other.add(f"{lang}, several turns, {form}", run([sampler.turns(lang, form) for _ in range(args.each // 2)]))
    other.show("Conflicts and conversations", ("right",))

    outside = Table()
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test")
        for label, draw in beyond(sampler, lang):
            outside.add(f"{lang}, {label}", run([draw() for _ in range(args.each // 2)]))
    outside.show("Beyond what was taught")

    changed_table = Table()
    for lang in world.LANGUAGES:
        sampler = world.Sampler(args.seed, "test")
        cases = [sampler.evidence(lang, 5) for _ in range(args.each // 2)]
        cases = [case for case, result in zip(cases, run(cases)) if result[0]]
        changed, kept = knockout(model, tokenizer, cases)
        changed_table.add(f"{lang}, gold document hidden: answer changes", [(c, 0, 0) for c in changed])
        changed_table.add(f"{lang}, another document hidden: answer stays", [(c, 0, 0) for c in kept])
    changed_table.show("Attention knockout of one document, 5 documents, first answer token", ("share",))


if __name__ == "__main__":
    main()
