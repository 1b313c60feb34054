"""The rows that `make bench` measures, and what one says."""

import math
import os
import re
import statistics
from dataclasses import dataclass

QUANTISED = {"gemma-3-270m": "gemma-3-270m-q4_k_m.gguf", "qwen2.5-coder-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"}
FLOAT = {"llama-110m-f32": "float32", "llama-110m-bf16": "bfloat16"}

# Test: the ratio that must be reached, and the ratio that is the goal.
BESIDE_LLAMA = {"pp512": (1.3, 2.0), "pp2048": (1.3, 2.0), "tg64": (1.1, 1.5), "tg64 @ d2048": (1.2, 1.6), "load": (1 / 1.5, 1.0)}
BESIDE_TRANSFORMERS = {"pp1024": (1.5, 3.0)}
# Two threads beside a busy neighbour, against our own one thread beside it.
BESIDE_A_NEIGHBOUR = (0.8, 1.0)


@dataclass(frozen=True)
class Row:
    """One measurement: `contenders` are named by engine, setting and threads, the first is ours."""

    name: str
    model: str
    test: str
    threads: int
    peer: str
    contenders: tuple
    # For each line of the table: the contenders of which the better one counts, and the ratios that must and should be reached.
    against: tuple
    neighbour: bool = False


def all_rows():
    for model in QUANTISED:
        for test, (must, goal) in BESIDE_LLAMA.items():
            for threads in (1, 2):
                peers = tuple(f"llama.cpp fa{flash} -t{threads}" for flash in (0, 1))
                contenders = (f"glassbox -t{threads}", *peers)
                yield Row(f"{model} {test} t{threads}", model, test, threads, "llama.cpp", contenders, ((peers, must, goal),))
        for test in ("pp512", "tg64"):
            peers, alone = tuple(f"llama.cpp fa{flash} -t2" for flash in (0, 1)), ("glassbox -t1",)
            against = ((alone, *BESIDE_A_NEIGHBOUR), (peers, *BESIDE_LLAMA[test]))
            yield Row(f"{model} {test} t2 beside a neighbour", model, test, 2, "llama.cpp", ("glassbox -t2", *alone, *peers), against, True)
    for model, stored in FLOAT.items():
        for test, (must, goal) in BESIDE_TRANSFORMERS.items():
            for threads in (1, 2):
                peers = tuple(f"transformers {dtype} -t{threads}" for dtype in dict.fromkeys([stored, "float32"]))
                contenders = (f"glassbox -t{threads}", *peers)
                yield Row(f"{model} {test} t{threads}", model, test, threads, "transformers", contenders, ((peers, must, goal),))


def line(row, peers, must, goal, answers):
    """One line of the table: ours against the better of `peers`."""
    ours = answers[row.contenders[0]]
    seconds = lambda answers, clock="seconds": [answer[clock] for answer in answers]
    peer = min(peers, key=lambda peer: statistics.median(seconds(answers[peer])))
    theirs = answers[peer]
    tokens = None if row.test == "load" else int(re.match(r"[a-z]+(\d+)", row.test).group(1))
    shown = lambda answers: (lambda middle: tokens / middle if tokens else middle * 1e3)(statistics.median(seconds(answers)))
    ratios = [their / own for their, own in zip(seconds(theirs), seconds(ours))]
    low, high, level = interval_of_median(ratios)
    by_processor = [their / own for their, own in zip(seconds(theirs, "processor_seconds"), seconds(ours, "processor_seconds"))]
    return {
        "model": row.model, "test": row.test, "threads": row.threads, "neighbour": row.neighbour, "against": peer,
        "unit": "t/s" if tokens else "ms", "peer": shown(theirs), "glassbox": shown(ours),
        "ratios": ratios, "ratio": statistics.median(ratios), "low": low, "high": high, "level": level,
        "ratio_by_processor_time": statistics.median(by_processor), "must": must, "goal": goal,
        "peer_share": share(theirs, threads_of(peer)), "glassbox_share": share(ours, row.threads),
    }


def threads_of(contender):
    return int(contender.rsplit("-t", 1)[1])


def share(answers, threads):
    """Which part of their processors the threads got, in the median turn."""
    processors = min(threads, os.cpu_count() or threads)
    return statistics.median(answer["processor_seconds"] / answer["seconds"] / processors for answer in answers)


def interval_of_median(values):
    """The values, counted from both ends, between which the median of all that could be measured lies with at least 93 %, whatever
    their distribution; with that probability. Of five values: the smallest and the largest, 93.75 %."""
    ordered, n = sorted(values), len(values)
    outside = lambda skipped: 2 * sum(math.comb(n, k) for k in range(skipped + 1)) / 2**n
    skipped = 0
    while skipped + 1 < (n + 1) // 2 and 1 - outside(skipped + 1) >= 0.93:
        skipped += 1
    return ordered[skipped], ordered[n - 1 - skipped], 1 - outside(skipped)
