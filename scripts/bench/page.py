"""The book's page of what `make bench` measured, in both languages."""

import statistics

from rows import all_rows

TEXTS = {
    "en": {
        "book": "book/src", "title": "Measured",
        "made": "`make bench` made this page ([how, and how to read it](../speed.md)): {machine}; {when}; glassbox {commits}; {versions}; "
                "{pairs} turns a row; keys and values as {kv_types} (GGUF files).",
        "some": "{measured} of {all} rows are measured; the others have no number.",
        "interval": "A ratio over 1 means that glassbox is faster. In brackets the interval that holds the median ratio with {level:.0%}.",
        "busy": "In the median row threads got only {share:.0%} of their processors: other work ran on the machine, and the column by processor "
                "time is the one to trust.",
        "head": ["model", "test", "threads", "against", "its speed", "glassbox", "ratio", "by processor time", "must", "goal"],
        "load": "load to first token", "neighbour": ", beside a busy neighbour",
        "commands": "Every contender is one of these processes, which answers the name of a test with one repetition:",
    },
    "zh": {
        "book": "book/zh/src", "title": "实测",
        "made": "本页由 `make bench` 生成（[怎样测、怎样读](../speed.md)）：{machine}；{when}；glassbox {commits}；{versions}；"
                "每行轮流 {pairs} 次；键和值存为 {kv_types}（GGUF 文件）。",
        "some": "{all} 行中测了 {measured} 行；其余没有数字。",
        "interval": "比值大于 1 表示 glassbox 更快。方括号里的区间以 {level:.0%} 的概率包含比值的中位数。",
        "busy": "在居中的一行里，各线程只得到了处理器时间的 {share:.0%}：机器上还有别的工作，应以按处理器时间的一列为准。",
        "head": ["模型", "测试", "线程", "对手", "对手的速度", "glassbox", "比值", "按处理器时间", "必须", "目标"],
        "load": "从载入到首个词元", "neighbour": "，旁边有忙碌的邻居",
        "commands": "每个参与者都是下面的一个进程，读到测试名就测一次：",
    },
}


def page(names, results, language):
    """Of the rows of these names, as Markdown."""
    texts, rows = TEXTS[language], [results["rows"][name] for name in names]
    if not rows:
        return f"# {texts['title']}\n"
    lines = [line for row in rows for line in row["lines"]]
    every = lambda value: ", ".join(sorted({value(row) for row in rows}))
    versions = sorted({version for row in rows for version in row["versions"] if not version.startswith("glassbox")})
    days = sorted({row["when"][:10] for row in rows})
    made = texts["made"].format(
        machine=every(lambda row: row["machine"]), when=days[0] if len(days) == 1 else f"{days[0]} – {days[-1]}",
        commits=every(lambda row: f"{row['glassbox']['commit']} (SHA-256 {row['glassbox']['sha256'][:12]}…)"), versions=", ".join(versions),
        pairs=every(lambda row: str(row["pairs"])), kv_types=every(lambda row: row["kv_type"]),
    )
    told = [f"# {texts['title']}", "", made, ""]
    whole = len(list(all_rows()))
    if len(rows) < whole:
        told += [texts["some"].format(measured=len(rows), all=whole), ""]
    told += [texts["interval"].format(level=min(line["level"] for line in lines)), ""]
    share = statistics.median(line[side] for line in lines if not line["neighbour"] for side in ("peer_share", "glassbox_share")) \
        if any(not line["neighbour"] for line in lines) else 1.0
    if share < 0.9:
        told += [texts["busy"].format(share=share), ""]
    told += ["| " + " | ".join(texts["head"]) + " |", "|---|---|---:|---|" + "---:|" * 6]
    told += ["| " + " | ".join(cells(line, texts)) + " |" for line in lines]
    commands = dict.fromkeys(command for row in rows for command in row["commands"])
    told += ["", texts["commands"], "", "```text", *commands, "```"]
    return "\n".join(told)


def cells(line, texts):
    test = texts["load"] if line["test"] == "load" else f"`{line['test']}`"
    return [
        line["model"], test + (texts["neighbour"] if line["neighbour"] else ""), str(line["threads"]), line["against"],
        f"{line['peer']:.1f} {line['unit']}", f"{line['glassbox']:.1f} {line['unit']}",
        f"{line['ratio']:.2f} [{line['low']:.2f}, {line['high']:.2f}]", f"{line['ratio_by_processor_time']:.2f}",
        f"{line['must']:.2f}", f"{line['goal']:.2f}",
    ]


def put_into_summary(summary, language):
    """Names the page in the table of contents, below the page on speed."""
    text = summary.read_text()
    entry = f"  - [{TEXTS[language]['title']}](speed/measured.md)\n"
    if entry in text:
        return
    before, speed, after = text.partition("(speed.md)\n")
    if not speed:
        raise SystemExit(f"{summary} has no page speed.md to put speed/measured.md under")
    summary.write_text(before + speed + entry + after)
