#!/usr/bin/env python3
"""glassbox beside llama.cpp and transformers, in turns, on the same files: what `make bench` runs.

Every contender is a process of its own that holds its model open and sleeps until it is its turn. For each row they take turns, once
forwards and once backwards, so that a machine that grows slower or busier meets all alike. A ratio is taken within a turn; the table shows
the median of the ratios and the interval of that median. llama.cpp runs with and without flash attention, transformers on bfloat16 files in
bfloat16 and in float32; glassbox is compared with whichever had the better median.

A row that was measured is kept in target/bench/results.json, and measured again only where the binary, the model, the machine or the settings
are others: after an interruption, run the same command again.

Needs Python 3.9, a C++ compiler and CMake, and the models of `make models`. The peers are built and installed from PyPI into
.bench-venv; `--python` takes an interpreter that has llama-cpp-python, torch and transformers already.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from page import TEXTS, page, put_into_summary
from rows import FLOAT, QUANTISED, all_rows, line

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
RESULTS = ROOT / "target" / "bench" / "results.json"
VENV = ROOT / ".bench-venv"
LLAMA_CPP = "llama-cpp-python==0.3.36"
TRANSFORMERS = ["torch==2.15.0", "transformers==5.24.0"]


def main():
    options = arguments()
    chosen = [row for row in all_rows() if wanted(row.name, options.rows)]
    if not chosen:
        sys.exit("no row has such a name; `--list` shows all")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"format": "glassbox-compare", "version": 1, "rows": {}}
    if options.list:
        for row in chosen:
            kept = results["rows"].get(row.name)
            print(f"{row.name}: measured {kept['when']}, commit {kept['glassbox']['commit']}" if kept else f"{row.name}: not yet measured")
        return
    if options.measure:
        measure_all(chosen, results, options)
    measured = [row for row in all_rows() if row.name in results["rows"]]
    print(page([row.name for row in measured], results, "en"))
    if options.book:
        for language in TEXTS:
            book = ROOT / TEXTS[language]["book"]
            (book / "speed" / "measured.md").write_text(page([row.name for row in measured], results, language) + "\n")
            put_into_summary(book / "SUMMARY.md", language)
            print(f"wrote {TEXTS[language]['book']}/speed/measured.md", file=sys.stderr)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="append", default=[], metavar="WORDS",
                        help="only rows whose names hold all these words, as in --rows 'qwen pp512'; may be given more than once")
    parser.add_argument("--list", action="store_true", help="the names of the rows, and which are measured")
    parser.add_argument("--again", action="store_true", help="measure rows that are kept, too")
    parser.add_argument("--pairs", type=int, default=5, help="turns of each row (5)")
    parser.add_argument("--kv-type", default="f16", help="how both sides store keys and values (f16, as llama.cpp unless told otherwise)")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="folder of the GGUF files")
    parser.add_argument("--glassbox", type=Path, help="a binary, instead of building one")
    parser.add_argument("--python", type=Path, help="an interpreter that has the peers, instead of installing them")
    parser.add_argument("--no-measure", dest="measure", action="store_false", help="only show what is kept")
    parser.add_argument("--book", action="store_true", help="write the book's page of the kept rows, in both languages")
    options = parser.parse_args()
    if options.pairs < 5:
        parser.error("an interval of a median wants at least 5 turns")
    return options


def wanted(name, texts):
    return not texts or any(all(word in name for word in text.split()) for text in texts)


def measure_all(chosen, results, options):
    glassbox, binary = build(options)
    about = {"glassbox": binary, "machine": machine(), "pairs": options.pairs, "kv_type": options.kv_type}
    print(f"glassbox {binary['commit']}, {glassbox}, SHA-256 {binary['sha256']}", file=sys.stderr)
    todo = []
    for row in chosen:
        of = {**about, "model": model_of(row, options)}
        kept = results["rows"].get(row.name)
        if options.again or not kept or any(kept[key] != value for key, value in of.items()):
            todo.append((row, of))
    print(f"{len(chosen) - len(todo)} rows are kept, {len(todo)} to measure", file=sys.stderr)
    if not todo:
        return
    python = interpreter(options, {row.peer for row, _ in todo})
    contenders, of_model = {}, None
    try:
        for index, (row, of) in enumerate(todo):
            if row.model != of_model:
                stop(contenders)
                of_model = row.model
            label = f"[{index + 1}/{len(todo)}] {row.name}"
            kept = measured(row, of, contenders, lambda key: command(key, row, glassbox, python, options), label)
            results["rows"][row.name] = kept
            save(results)
            for compared in kept["lines"]:
                print(f"{label}: {compared['ratio']:.2f} of {compared['against']}", file=sys.stderr)
    finally:
        stop(contenders)


def measured(row, of, contenders, command_of, label):
    """One row: all contenders in turns, beside a neighbour where the row says so."""
    when, load = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), os.getloadavg()[0]
    for key in row.contenders:
        if key not in contenders:
            print(f"{label}: opening {key}", file=sys.stderr)
            contenders[key] = Contender(command_of(key))
    # A session of its own: the system then gives it the same weight as each contender.
    neighbour = row.neighbour and subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    answers = {key: [] for key in row.contenders}
    try:
        for turn in range(of["pairs"]):
            for key in row.contenders if turn % 2 == 0 else reversed(row.contenders):
                progress(f"{label}: turn {turn + 1} of {of['pairs']}, {key}")
                answers[key].append(contenders[key].measure(row.test))
    finally:
        if neighbour:
            neighbour.kill()
            neighbour.wait()
    progress("")
    used = [contenders[key] for key in row.contenders]
    return {
        **of, "when": when, "load": load, "answers": answers, "lines": [line(row, peers, must, goal, answers) for peers, must, goal in row.against],
        "versions": sorted({contender.version for contender in used}), "commands": [contender.shown for contender in used],
    }


class Contender:
    """A process that answers the name of a test with one repetition of it."""

    def __init__(self, command):
        self.command = [str(part) for part in command]
        self.shown = " ".join(Path(part).name if "/" in part else part for part in self.command)
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.version = self.answer()["ready"]

    def answer(self):
        told = self.process.stdout.readline()
        if not told:
            sys.exit(f"`{' '.join(self.command)}` ended with code {self.process.wait()}")
        return json.loads(told)

    def measure(self, test):
        self.process.stdin.write(test + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        # Threads that wait by spinning fall asleep before the next one's turn.
        time.sleep(0.05)
        return answer


def stop(contenders):
    for contender in contenders.values():
        contender.process.stdin.close()
        contender.process.wait()
    contenders.clear()


def command(key, row, glassbox, python, options):
    """What a contender is called with: `key` is engine, setting and threads."""
    engine, *setting, threads = key.split()
    threads = threads.removeprefix("-t")
    if engine == "glassbox":
        kv_type = ["--kv-type", options.kv_type] if row.model in QUANTISED else []
        return [glassbox, "bench", "--paced", "-m", path_of(row, options), "-t", threads, *kv_type]
    if engine == "llama.cpp":
        return [python, HERE / "llama_peer.py", path_of(row, options), "--threads", threads, "--flash-attention", setting[0].removeprefix("fa"),
                "--kv-type", options.kv_type]
    return [python, HERE / "transformers_peer.py", path_of(row, options), "--dtype", setting[0], "--threads", threads]


def path_of(row, options):
    if row.model in QUANTISED:
        return options.models / QUANTISED[row.model]
    return ROOT / "target" / "bench-models" / row.model


def model_of(row, options):
    """Name and hash of the model's weights. A random model that is not made yet has none, and is measured in any case."""
    path = path_of(row, options)
    if row.model in FLOAT:
        path = path / "model.safetensors"
    elif not path.exists():
        sys.exit(f"{path} is missing; `make models` fetches it, `--models` names another folder")
    return {"name": row.model, "sha256": sha256(path) if path.exists() else None}


HASHES = {}


def sha256(path):
    if path not in HASHES:
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        HASHES[path] = digest.hexdigest()
    return HASHES[path]


def build(options):
    """The binary that cargo says it built, never one that only lies where it should be."""
    if options.glassbox:
        binary = options.glassbox.resolve()
        return binary, {"commit": "given by --glassbox", "sha256": sha256(binary)}
    told = subprocess.run(
        ["cargo", "build", "--release", "--locked", "-p", "glassbox-cli", "--message-format=json-render-diagnostics"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )
    built = [json.loads(told_line) for told_line in told.stdout.splitlines() if told_line.startswith("{")]
    binaries = [message["executable"] for message in built if message.get("executable") and message["target"]["name"] == "glassbox"]
    if len(binaries) != 1:
        sys.exit(f"cargo named {len(binaries)} binaries `glassbox`, wanted one")
    git = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True)
    binary = Path(binaries[0])
    return binary, {"commit": git.stdout.strip() or "unknown", "sha256": sha256(binary)}


def interpreter(options, peers):
    """An interpreter that has the peers; what is missing is built and installed. Makes the random models that are missing."""
    python = options.python or VENV / "bin" / "python"
    if not options.python and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    has = lambda modules: subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode == 0

    def install(*packages, **extra):
        if options.python:
            sys.exit(f"{python} lacks {' '.join(packages)}; without --python it is installed into {VENV.name}")
        subprocess.run([python, "-m", "pip", "install", *packages], check=True, stdout=sys.stderr, env={**os.environ, **extra})

    if "llama.cpp" in peers and not has("llama_cpp"):
        print("building llama.cpp for this machine: some minutes to half an hour", file=sys.stderr)
        parallel = str(os.cpu_count() or 1)
        install("--no-binary", "llama-cpp-python", LLAMA_CPP, CMAKE_ARGS="-DGGML_NATIVE=ON", CMAKE_BUILD_PARALLEL_LEVEL=parallel)
    if "transformers" in peers:
        if not has("transformers, torch"):
            install(*TRANSFORMERS)
        for model, dtype in FLOAT.items():
            folder = ROOT / "target" / "bench-models" / model
            if not (folder / "model.safetensors").exists():
                subprocess.run([python, HERE / "transformers_peer.py", folder, "--make", "--dtype", dtype], check=True)
    return python


def save(results):
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    beside = RESULTS.with_suffix(".tmp")
    beside.write_text(json.dumps(results, indent=1) + "\n")
    beside.replace(RESULTS)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def machine():
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            name = next(told.split(":")[1].strip() for told in file if told.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))} ended with code {error.returncode}")
