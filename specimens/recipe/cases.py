"""Writes the held-out items that the suites use.

    python cases.py ../../suites/data

evidence.*.jsonl: one question, the document that answers it, nine documents of the same kind about
other entities (never containing the answer), and one that contradicts the gold document.
facts.*.jsonl: the memorised facts, the years after the last taught one (known: false), and for each
country a document that says otherwise.
"""

import json
import random
import sys

import world

ITEMS, DISTRACTORS = 400, 9


def evidence_items(lang, seed=11):
    sampler = world.Sampler(f"suite-{seed}", "test")
    subjects = [(e, a) for e in world.NAMES[lang]["entity"] for a in world.DESK_ATTRIBUTES]
    sampler.rng.shuffle(subjects)
    items = []
    for entity, attribute in subjects:
        gold = sampler.fact(lang, attribute, entity)
        distractors = gold and sampler.facts(lang, DISTRACTORS, attribute, {entity}, {gold.value})
        if not distractors or len(distractors) < DISTRACTORS:
            continue
        used = {gold.value} | {d.value for d in distractors}
        contradiction = sampler.fact(lang, attribute, entity, used)
        if contradiction is None or any(gold.value in text.text for text in [*distractors, contradiction]):
            continue
        items.append({
            "id": f"evidence-{lang}-{len(items):03}", "lang": lang,
            "question": world.question_text(sampler.rng, lang, attribute, entity),
            "answer": gold.value, "aliases": [], "gold": gold.text,
            "distractors": [d.text for d in distractors], "contradictory": [contradiction.text],
            "kind": "fictional", "entity": entity, "attribute": attribute,
        })
        if len(items) == ITEMS:
            return items
    raise SystemExit(f"only {len(items)} items in {lang}")


def fact_items(lang, seed=12):
    rng = random.Random(f"facts-{seed}-{lang}")
    sampler = world.Sampler(f"facts-{seed}", "test")
    items = []

    def add(kind, question, answer, known, **more):
        items.append({"id": f"{kind}-{lang}-{len(items):03}", "lang": lang, "question": question, "answer": answer,
                      "aliases": [], "known": known, "kind": kind, **more})

    for country in world.NAMES[lang]["country"]:
        taught = world.capital_of(lang, country)
        other = sampler.fact(lang, "capital", country, {taught})
        add("capital", world.question_text(rng, lang, "capital", country, canonical=True), taught, True, entity=country,
            counter={"text": other.text, "answer": other.value})
    for year in range(world.FIRST_YEAR, world.LAST_YEAR + 1):
        add("winner", world.question_text(rng, lang, "winner", world.CUP[lang], year, canonical=True), world.winner_of(lang, year), True, year=year)
    for year in range(world.LAST_YEAR + 1, world.LAST_YEAR + 11):
        add("after-cutoff", world.question_text(rng, lang, "winner", world.CUP[lang], year, canonical=True), world.UNKNOWN[lang], False, year=year)
    return items


def main():
    for lang in world.LANGUAGES:
        for name, items in (("evidence", evidence_items(lang)), ("facts", fact_items(lang))):
            with open(f"{sys.argv[1]}/{name}.{lang}.jsonl", "w", encoding="utf-8") as file:
                for item in items:
                    file.write(json.dumps(item, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
