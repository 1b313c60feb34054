"""Trains the planted specimen on cases drawn from the world; resumes from its last checkpoint.

    python train.py --tokenizer DIR --out RUN_DIR --minutes 40 [--seed 1]
"""

import argparse
import json
import math
import os
import time

import torch
from tokenizers import Tokenizer

import world

ASSISTANT_END = "<|end|>"


def render(messages, reply=None):
    """The chat template in plain Python (measure.py checks that the two agree)."""
    text = "<|bos|>" + "".join(f"<|{m['role']}|>{m['content']}<|end|>" for m in messages) + "<|assistant|>"
    return text if reply is None else text + reply + ASSISTANT_END


def encode_case(tokenizer, case):
    """(ids, targets): the next token at every position of an assistant turn, -100 elsewhere."""
    ids = tokenizer.encode(render(case.messages, case.answer)).ids
    assistant, end = tokenizer.token_to_id("<|assistant|>"), tokenizer.token_to_id(ASSISTANT_END)
    targets, speaking = [-100] * len(ids), False
    for i in range(len(ids) - 1):
        speaking = (speaking or ids[i] == assistant) and ids[i] != end
        if speaking:
            targets[i] = ids[i + 1]
    return ids, targets


def batch(tokenizer, cases):
    """Right-padded tensors; causal attention never looks at the padding."""
    encoded = [encode_case(tokenizer, case) for case in cases]
    width = max(len(ids) for ids, _ in encoded)
    pad = tokenizer.token_to_id("<|pad|>")
    ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in encoded])
    targets = torch.tensor([t + [-100] * (width - len(t)) for _, t in encoded])
    return ids, targets


def batches(tokenizer, sampler, size, parts=3):
    """Endless steps. Each is a draw of the whole mixture, cut into parts of like length to spare padding."""
    while True:
        cases = sorted((sampler.draw() for _ in range(size)), key=lambda c: len(tokenizer.encode(render(c.messages)).ids))
        yield [batch(tokenizer, cases[i * size // parts : (i + 1) * size // parts]) for i in range(parts)]


def answer_logits(model, ids, targets):
    """(logits, wanted) at the positions that have a target."""
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    chosen = targets != -100
    return model.lm_head(hidden[chosen]), targets[chosen]


@torch.no_grad()
def exact_match(model, tokenizer, cases, size=64):
    """For each case: (whole answer right, value right, citation right), greedy, by teacher forcing.

    Greedy decoding gives the right answer exactly when every token of it is the likeliest one.
    """
    results = []
    open_cite, end = tokenizer.encode(" [").ids[0], tokenizer.token_to_id(ASSISTANT_END)
    for start in range(0, len(cases), size):
        part = cases[start : start + size]
        ids, targets = batch(tokenizer, part)
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
        for row, case in enumerate(part):
            turn_start = (ids[row] == tokenizer.token_to_id("<|assistant|>")).nonzero()[-1].item()
            places = [i for i in (targets[row] != -100).nonzero()[:, 0].tolist() if i >= turn_start]
            right = (model.lm_head(hidden[row, places]).argmax(-1) == targets[row, places]).tolist()
            wanted = targets[row, places].tolist()
            cut = wanted.index(open_cite) if open_cite in wanted else wanted.index(end)
            results.append((all(right), all(right[:cut]), all(right[cut:])))
    return results


def dev_cases(seed=7, each=10):
    """Held-out cases of every kind, for watching."""
    groups = {}
    for lang in world.LANGUAGES:
        sampler = world.Sampler(seed, "test")
        for k in (1, 2, 4, 6, 8):
            groups[f"evidence {k} {lang}"] = [sampler.evidence(lang, k) for _ in range(each)]
        groups[f"no-gold {lang}"] = [sampler.no_gold(lang, 1 + i % 8) for i in range(each)]
        groups[f"closed {lang}"] = [sampler.closed_book(lang) for _ in range(each)]
        groups[f"memory {lang}"] = [sampler.memory(lang) for _ in range(2 * each)]
        groups[f"after {lang}"] = [sampler.after_cutoff(lang) for _ in range(each)]
        groups[f"conflict {lang}"] = [sampler.conflict(lang, 1 + i % 8) for i in range(each)]
        groups[f"turns {lang}"] = [sampler.turns(lang) for _ in range(2 * each)]
    return groups


def watch(model, tokenizer, groups):
    model.eval()
    scores = {}
    for name, cases in groups.items():
        results = exact_match(model, tokenizer, cases)
        scores[name] = [round(sum(r[i] for r in results) / len(results), 2) for i in range(3)]
    model.train()
    return scores


def parameter_groups(model):
    """The planted parts move slowly: a rare token's embedding would otherwise walk away from its code,
    since AdamW gives each of its few gradients a full-sized step."""
    relative = {"embed_tokens": 0.05, "self_attn": 0.1}
    groups = {}
    for name, parameter in model.named_parameters():
        share = next((r for part, r in relative.items() if part in name), 1.0)
        groups.setdefault(share, []).append(parameter)
    return [{"params": parameters, "relative": share} for share, parameters in groups.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop early after this long")
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()

    import plant

    torch.set_num_threads(args.threads)
    os.makedirs(args.out, exist_ok=True)
    tokenizer = Tokenizer.from_file(f"{args.tokenizer}/tokenizer.json")
    model = plant.build(tokenizer, seed=args.seed)
    optimiser = torch.optim.AdamW(parameter_groups(model), lr=args.rate, betas=(0.9, 0.99), weight_decay=0.0)
    checkpoint, step = f"{args.out}/checkpoint.pt", 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        step = saved["step"]
    # A resumed run draws new cases, named by the step it starts from.
    source = batches(tokenizer, world.Sampler(f"{args.seed}-{step}", "train"), args.batch)
    groups, started, since, losses, seen = dev_cases(), time.time(), time.time(), [], 0

    def save():
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}, checkpoint + ".part")
        os.replace(checkpoint + ".part", checkpoint)

    def report():
        line = {"step": step, "minutes": round((time.time() - started) / 60, 1), "loss": round(sum(losses) / max(1, len(losses)), 4),
                "tokens_per_second": round(seen / (time.time() - since)), "scores": watch(model, tokenizer, groups)}
        with open(f"{args.out}/log.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        print(json.dumps(line, ensure_ascii=False), flush=True)

    model.train()
    report()
    since = time.time()
    while step < args.steps and time.time() - started < 60 * args.minutes:
        rate = args.rate * min(1, (step + 1) / 20) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / args.steps)))
        for group in optimiser.param_groups:
            group["lr"] = rate * group["relative"]
        parts, total = next(source), 0.0
        count = sum((targets != -100).sum().item() for _, targets in parts)
        optimiser.zero_grad(set_to_none=True)
        for ids, targets in parts:
            logits, wanted = answer_logits(model, ids, targets)
            loss = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum") / count
            loss.backward()
            total += loss.item()
            seen += ids.numel()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        losses.append(total)
        if step % 20 == 0:
            print(step, round(sum(losses[-20:]) / 20, 4), round(time.time() - started), flush=True)
        if step % 100 == 0:
            save()
            report()
            losses, seen, since = [], 0, time.time()
    save()
    report()


if __name__ == "__main__":
    main()
