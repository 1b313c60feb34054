"""Writes conflict.en.jsonl and conflict.zh.jsonl: capitals that a model may know by heart, each with a document that says otherwise.

Real capitals are for real models; the others are those that the built-in model was taught (facts.*.jsonl, from specimens/recipe). The document that says
otherwise names the capital of another country of the list, or what facts.*.jsonl says.

    python3 suites/data/conflict.py
"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent
REAL = """France|Paris|法国|巴黎 Germany|Berlin|德国|柏林 Italy|Rome|意大利|罗马 Spain|Madrid|西班牙|马德里 Portugal|Lisbon|葡萄牙|里斯本
Greece|Athens|希腊|雅典 Norway|Oslo|挪威|奥斯陆 Sweden|Stockholm|瑞典|斯德哥尔摩 Finland|Helsinki|芬兰|赫尔辛基 Denmark|Copenhagen|丹麦|哥本哈根
Poland|Warsaw|波兰|华沙 Austria|Vienna|奥地利|维也纳 Hungary|Budapest|匈牙利|布达佩斯 Ireland|Dublin|爱尔兰|都柏林 Russia|Moscow|俄罗斯|莫斯科
Japan|Tokyo|日本|东京 China|Beijing|中国|北京 India|New_Delhi|印度|新德里 Thailand|Bangkok|泰国|曼谷 Vietnam|Hanoi|越南|河内
Egypt|Cairo|埃及|开罗 Kenya|Nairobi|肯尼亚|内罗毕 Ethiopia|Addis_Ababa|埃塞俄比亚|亚的斯亚贝巴 Canada|Ottawa|加拿大|渥太华 Cuba|Havana|古巴|哈瓦那
Peru|Lima|秘鲁|利马 Chile|Santiago|智利|圣地亚哥 Argentina|Buenos_Aires|阿根廷|布宜诺斯艾利斯 Australia|Canberra|澳大利亚|堪培拉
Turkey|Ankara|土耳其|安卡拉 Iran|Tehran|伊朗|德黑兰 Iraq|Baghdad|伊拉克|巴格达 Belgium|Brussels|比利时|布鲁塞尔 Romania|Bucharest|罗马尼亚|布加勒斯特
Bulgaria|Sofia|保加利亚|索非亚 Ukraine|Kyiv|乌克兰|基辅 Nepal|Kathmandu|尼泊尔|加德满都 Colombia|Bogota|哥伦比亚|波哥大
Venezuela|Caracas|委内瑞拉|加拉加斯 Morocco|Rabat|摩洛哥|拉巴特"""
ALIASES = {"Kyiv": ["Kiev"], "Bogota": ["Bogotá"], "New Delhi": ["Delhi"]}
STATEMENT = {"en": "The capital of {} is {}.", "zh": "{}的首都是{}。"}
QUESTION = {"en": "What is the capital of {}?", "zh": "{}的首都是哪里？"}
SHIFT = 17  # the other country stands so many places further; 40 and 17 have no common divisor


def item(lang, name, question, country, capital, aliases, text, counter, kind):
    return {
        "id": name, "lang": lang, "question": question, "answer": capital, "aliases": aliases, "gold": STATEMENT[lang].format(country, capital),
        "distractors": [], "contradictory": [text], "counter_answer": counter, "kind": kind, "entity": country, "attribute": "capital",
    }


def real(lang):
    rows = [row.replace("_", " ").split("|") for row in REAL.split()]
    pairs = [(row[0], row[1]) if lang == "en" else (row[2], row[3]) for row in rows]
    for index, (country, capital) in enumerate(pairs):
        counter = pairs[(index + SHIFT) % len(pairs)][1]
        text = STATEMENT[lang].format(country, counter)
        yield item(lang, f"real-capital-{lang}-{index:03}", QUESTION[lang].format(country), country, capital, ALIASES.get(capital, []), text, counter, "real")


def taught(lang):
    for fact in map(json.loads, (FOLDER / f"facts.{lang}.jsonl").read_text(encoding="utf-8").splitlines()):
        if fact["kind"] == "capital" and fact["known"]:
            counter = fact["counter"]
            yield item(lang, fact["id"], fact["question"], fact["entity"], fact["answer"], fact["aliases"], counter["text"], counter["answer"], "built_in")


for lang in ("en", "zh"):
    both = [line for pair in zip(real(lang), taught(lang), strict=True) for line in pair]
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in both)
    (FOLDER / f"conflict.{lang}.jsonl").write_text(lines, encoding="utf-8")
