"""What `make bench` promises, without a model: `python3 -m unittest discover -s scripts/bench`."""

import json
import random
import statistics
import sys
import tempfile
import unittest
from pathlib import Path

import compare
import page
import rows

# A contender that answers each test with its own number of seconds; it counts its answers, so that turns can be told apart.
FAKE = """
import json, sys
print(json.dumps({"ready": "fake 1"}), flush=True)
for turn, name in enumerate(sys.stdin):
    seconds = SECONDS * (1 + turn / 100)
    print(json.dumps({"seconds": seconds, "processor_seconds": seconds, "test": name.strip()}), flush=True)
"""


def a_row(test="pp512", neighbour=False):
    peers = ("llama.cpp fa0 -t1", "llama.cpp fa1 -t1")
    return rows.Row("m " + test, "m", test, 1, "llama.cpp", ("glassbox -t1", *peers), ((peers, 1.3, 2.0),), neighbour)


def measured(row, pairs=5):
    seconds = {"glassbox -t1": 0.001, "llama.cpp fa0 -t1": 0.004, "llama.cpp fa1 -t1": 0.002}
    contenders = {}
    command = lambda key: [sys.executable, "-c", FAKE.replace("SECONDS", str(seconds[key]))]
    of = {"glassbox": {"commit": "c", "sha256": "0" * 64}, "machine": "a machine", "pairs": pairs, "kv_type": "f16", "model": {"name": "m"}}
    try:
        return compare.measured(row, of, contenders, command, row.name)
    finally:
        compare.stop(contenders)


class Rows(unittest.TestCase):
    def test_every_row_has_a_name_of_its_own_and_its_contenders_have_commands(self):
        names = [row.name for row in rows.all_rows()]
        self.assertEqual(len(names), len(set(names)))
        options = compare.argparse.Namespace(models=Path("models"), kv_type="f16")
        for row in rows.all_rows():
            for key in row.contenders:
                command = compare.command(key, row, Path("glassbox"), Path("python"), options)
                self.assertIn(key[-1], [str(part) for part in command], f"{row.name}: {key}")

    def test_rows_are_chosen_by_words_of_their_names(self):
        chosen = lambda *texts: [row.name for row in rows.all_rows() if compare.wanted(row.name, list(texts))]
        self.assertEqual(chosen("qwen pp512 t1"), ["qwen2.5-coder-0.5b pp512 t1"])
        self.assertEqual(len(chosen("f32", "bf16")), 4)
        self.assertEqual(len(chosen()), len(list(rows.all_rows())))
        self.assertEqual(chosen("no such model"), [])


class Lines(unittest.TestCase):
    def test_contenders_take_turns_and_the_better_peer_counts(self):
        kept = measured(a_row())
        [line] = kept["lines"]
        self.assertEqual(line["against"], "llama.cpp fa1 -t1")
        self.assertAlmostEqual(line["ratio"], 2.0)
        self.assertAlmostEqual(line["glassbox"], 512 / 0.00102, places=3)
        self.assertEqual([len(answers) for answers in kept["answers"].values()], [5, 5, 5])
        self.assertEqual(kept["versions"], ["fake 1"])

    def test_a_load_is_told_in_milliseconds_and_a_neighbour_ends_with_its_row(self):
        [line] = measured(a_row("load", neighbour=True))["lines"]
        self.assertEqual((line["unit"], line["neighbour"]), ("ms", True))
        self.assertAlmostEqual(line["glassbox"], 1.02)

    def test_the_interval_of_a_median_holds_it_as_often_as_it_says(self):
        self.assertEqual(rows.interval_of_median([5, 1, 4, 2, 3]), (1, 5, 0.9375))
        self.assertEqual(rows.interval_of_median(list(range(9)))[:2], (1, 7))
        dice = random.Random(1)
        for n in (5, 9, 20):
            # Exponential: the median is ln 2, and nothing is symmetric.
            runs = [rows.interval_of_median([dice.expovariate(1.0) for _ in range(n)]) for _ in range(4000)]
            level = runs[0][2]
            share = statistics.mean(low <= 0.6931471805599453 <= high for low, high, _ in runs)
            # Four standard errors of a share of 4000 runs.
            self.assertLess(abs(share - level), 4 * (level * (1 - level) / 4000) ** 0.5, n)


class Pages(unittest.TestCase):
    def test_both_languages_show_the_same_cells(self):
        results = {"rows": {"m pp512": measured(a_row()), "m load": measured(a_row("load"))}}
        pages = {language: page.page(list(results["rows"]), results, language) for language in page.TEXTS}
        numbers = {language: [told.split("|")[5:] for told in text.splitlines() if told.startswith("| m |")] for language, text in pages.items()}
        self.assertEqual(numbers["en"], numbers["zh"])
        self.assertEqual(len(numbers["en"]), 2)
        self.assertIn("2.00 [2.00, 2.00]", pages["en"])
        self.assertIn("a machine", pages["zh"])

    def test_the_table_of_contents_names_the_page_once(self):
        with tempfile.TemporaryDirectory() as folder:
            summary = Path(folder) / "SUMMARY.md"
            summary.write_text("- [Speed](speed.md)\n  - [Growth](speed/growth.md)\n")
            for _ in range(2):
                page.put_into_summary(summary, "en")
            self.assertEqual(summary.read_text(), "- [Speed](speed.md)\n  - [Measured](speed/measured.md)\n  - [Growth](speed/growth.md)\n")


class Kept(unittest.TestCase):
    def test_results_are_written_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            compare.RESULTS = Path(folder) / "bench" / "results.json"
            compare.save({"rows": {}})
            self.assertEqual(json.loads(compare.RESULTS.read_text()), {"rows": {}})
            self.assertEqual([path.name for path in compare.RESULTS.parent.iterdir()], ["results.json"])


if __name__ == "__main__":
    unittest.main()
