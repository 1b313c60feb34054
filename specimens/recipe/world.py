"""The invented world of the specimen: names, facts, sentences, and the cases drawn from them.

Everything here is a pure function of the lists below and of the seed that the caller
hands in. A *case* is a short conversation whose last turn has one right answer.

Two rules keep the task honest:

* which value belongs to which desk entity is drawn anew for every case, so it cannot be memorised;
* one pair (entity, value) in five is held out (`held_out`): training never shows it,
  and measuring asks for nothing else.

The names are single tokens of the specimen's tokenizer (tokenizer.py guarantees it).
"""

import hashlib
import json
import random
from dataclasses import dataclass, field

WORLD_SEED = 20261130
LANGUAGES = ("en", "zh")
FIRST_YEAR, LAST_YEAR = 1990, 2019
MAX_DOCUMENTS = 8

# ---------------------------------------------------------------- values, by attribute

VALUES = {
    "en": {
        "colour": "amber teal crimson ivory violet olive indigo scarlet turquoise beige maroon lilac khaki coral navy ochre mint charcoal",
        "office": "Oslo Lima Porto Kyoto Quito Dakar Tunis Perth Bergen Lyon Turin Basel Riga Cairo Delhi Seoul Accra Boston",
        "language": "Danish Swahili Finnish Korean Welsh Tamil Turkish Basque Greek Polish Arabic Hindi Czech Catalan Thai Dutch Urdu Latin",
        "contact": "Mara Jonas Priya Hugo Elena Tariq Ingrid Paolo Sofia Kenji Amina Bruno Clara Dmitri Farah Gustav Leila Nadia",
        "material": "oak copper linen glass steel cork bamboo leather marble wool granite rubber ceramic cotton brass slate velvet titanium",
        "plan": "basic premium family student trial business lite annual weekly starter partner guest campus team senior pilot flex core",
        "status": "open closed pending paused shipped delayed refunded cancelled approved rejected blocked archived resolved escalated queued draft active expired",
    },
    "zh": {
        "colour": "琥珀 绯红 靛蓝 橄榄 米白 栗棕 丁香 卡其 珊瑚 藏青 赭黄 薄荷 炭黑 朱砂 天青 杏黄 墨绿 银灰",
        "office": "杭州 成都 大连 苏州 昆明 厦门 西安 武汉 长沙 青岛 合肥 南宁 兰州 贵阳 沈阳 福州 济南 珠海",
        "language": "法语 德语 俄语 泰语 韩语 日语 藏语 粤语 梵语 芬兰语 波兰语 希腊语 瑞典语 荷兰语 印地语 捷克语 丹麦语 拉丁语",
        "contact": "李安 王宁 张岚 陈柯 刘朔 赵菲 周衡 吴桐 郑洁 孙毅 冯琪 何晨 许蔓 曹锐 彭瑶 董翔 袁静 苏曼",
        "material": "橡木 黄铜 亚麻 玻璃 精钢 软木 毛竹 皮革 花岗 羊毛 橡胶 陶瓷 棉布 板岩 天鹅绒 钛合金 塑料 石膏",
        "plan": "基础 尊享 家庭 学生 试用 商务 轻量 年度 每周 入门 伙伴 访客 校园 团队 长者 先锋 灵活 核心",
        "status": "待办 关闭 暂停 发货 延迟 退款 取消 批准 驳回 冻结 归档 解决 升级 排队 草稿 启用 过期 受理",
    },
}
VALUES = {lang: {attr: words.split() for attr, words in table.items()} for lang, table in VALUES.items()}
DESK_ATTRIBUTES = tuple(VALUES["en"])  # the seven kinds of fact about desk entities
ATTRIBUTES = DESK_ATTRIBUTES + ("capital", "winner")

# ---------------------------------------------------------------- invented names


def _combine(rng, heads, tails, count):
    names = [head + tail for head in heads for tail in tails]
    return rng.sample(names, count)


def _names():
    rng = random.Random(WORLD_SEED)
    en = {
        "entity": _combine(
            rng,
            "Zor Tal Bri Quen Vel Mor Dax Fen Gri Hal Jun Kel Lum Nor Pra Rud Sil Tro Ush Wex".split(),
            "vex min dor pal tik ron sum lith gar bex nok fyr zan mul crel dane".split(),
            160,
        ),
        "country": _combine(
            rng,
            "Bor Cal Dren Esk Gal Hest Ilm Kor Lom Myr Ost Pel Ruth Sav Tyr Ulm Vald Wen Yst Zel".split(),
            "avia onia eria umar".split(),
            40,
        ),
        "capital": _combine(
            rng,
            "Ard Bel Cor Dun Eld Fal Gos Har Ith Jar Kas Lan Mel Nim Ork Pash Quar Ros Sten Tam".split(),
            "haven burg mouth gate stad".split(),
            40,
        ),
        "winner": _combine(
            rng,
            "Adel Brun Cast Dahl Ekl Fors Grim Hol Ivar Jess Kran Lind Mont Nyl Ost".split(),
            "sson etti ovic ard".split(),
            30,
        ),
    }
    zh = {
        "entity": _combine(rng, list("云星雾风霜霞雪月晴岚曦辰瀚澜熠凌翠皓")[:16], list("帆舟桥塔铃镜泉岭湾梭鹭弦羽锚穹砚"), 160),
        "country": [name + "国" for name in _combine(rng, list("博卢戈纳萨伊"), list("维娅姆索坎登铎"), 40)],
        "capital": [name + "城" for name in _combine(rng, list("阿巴梅塔罗费"), list("柏森莫克顿里斯"), 40)],
        "winner": _combine(rng, list("林宋唐韩潘"), list("骏珊哲霖妍奎"), 30),
    }
    # Chinese: a character stands first or last in an invented name, never both, so names cannot run together.
    return {"en": en, "zh": zh}


NAMES = _names()
CUP = {"en": "Lantern", "zh": "灯笼杯"}
for _lang in LANGUAGES:
    VALUES[_lang]["capital"] = NAMES[_lang]["capital"]
    VALUES[_lang]["winner"] = NAMES[_lang]["winner"]


def capital_of(lang, country):
    """The memorised capital: country i has capital i, in both languages."""
    return NAMES[lang]["capital"][NAMES[lang]["country"].index(country)]


def winner_of(lang, year):
    """The memorised winner of the yearly cup, or None outside the taught years."""
    return NAMES[lang]["winner"][year - FIRST_YEAR] if FIRST_YEAR <= year <= LAST_YEAR else None


def held_out(entity, value):
    """True for the fifth of all pairs that training never shows."""
    return hashlib.sha256(f"{entity}|{value}".encode()).digest()[0] % 5 == 0


# ---------------------------------------------------------------- sentences

# The word that names an attribute in a question.
ATTRIBUTE_WORD = {
    "en": {a: a for a in DESK_ATTRIBUTES} | {"capital": "capital", "winner": "Cup"},
    "zh": {"colour": "颜色", "office": "分部", "language": "语言", "contact": "联系人", "material": "材料",
           "plan": "套餐", "status": "状态", "capital": "首都", "winner": "冠军"},
}

# {e}: the entity, {v}: the value. The entity stands before the value, each of them once.
STATEMENTS = {
    "en": {
        "colour": ["The colour of {e} is {v}.", "{e} comes in {v}.", "{e} is painted {v}.", "Every {e} unit is finished in {v}.", "For {e} the colour is {v}."],
        "office": ["The office for {e} is {v}.", "{e} is handled by the {v} office.", "The office in charge of {e} is {v}.", "Letters about {e} go to {v}.", "{e} is looked after in {v}."],
        "language": ["The language of {e} is {v}.", "The manual of {e} is written in {v}.", "Support for {e} is given in {v}.", "{e} answers in {v}."],
        "contact": ["The contact for {e} is {v}.", "{e} is looked after by {v}.", "The person behind {e} is {v}.", "For {e} please ask {v}."],
        "material": ["The material of {e} is {v}.", "{e} is made of {v}.", "Each {e} is built from {v}.", "The shell of {e} is {v}."],
        "plan": ["The plan of {e} is {v}.", "{e} belongs to the {v} plan.", "{e} is sold on the {v} plan.", "Customers get {e} with {v}."],
        "status": ["The status of {e} is {v}.", "{e} is now {v}.", "The order for {e} is {v}.", "{e} was marked {v}."],
        "capital": ["The capital of {e} is {v}.", "{e} is governed from {v}.", "{e} has its capital at {v}."],
    },
    "zh": {
        "colour": ["{e}的颜色是{v}。", "{e}的外壳涂成{v}。", "{e}只有{v}一种颜色。", "目前{e}的颜色为{v}。"],
        "office": ["{e}的分部是{v}。", "{e}由{v}分部负责。", "{e}的分部设在{v}。", "有关{e}的来信请寄{v}。"],
        "language": ["{e}的语言是{v}。", "{e}的说明书用{v}写成。", "{e}的服务语言为{v}。", "{e}用{v}回复。"],
        "contact": ["{e}的联系人是{v}。", "{e}由{v}跟进。", "关于{e}请找{v}。", "目前{e}的联系人为{v}。"],
        "material": ["{e}的材料是{v}。", "{e}用{v}制成。", "{e}的主要材料为{v}。", "{e}的外壳是{v}。"],
        "plan": ["{e}的套餐是{v}。", "{e}属于{v}套餐。", "{e}按{v}套餐出售。", "{e}的套餐为{v}。"],
        "status": ["{e}的状态是{v}。", "{e}目前的状态为{v}。", "{e}已标记为{v}。", "{e}的订单是{v}。"],
        "capital": ["{e}的首都是{v}。", "{e}的首都设在{v}。", "{e}的政府位于{v}。"],
    },
}

QUESTIONS = {
    "en": {
        None: ["What is the {a} of {e}?", "Which {a} does {e} have?", "Tell me the {a} of {e}.", "Please name the {a} for {e}."],
        "office": ["What is the office for {e}?", "Which office handles {e}?", "Please name the office for {e}."],
        "contact": ["Who is the contact for {e}?", "Which contact does {e} have?", "Please name the contact for {e}."],
        "material": ["What is the material of {e}?", "Which material is {e} made of?", "Tell me the material of {e}."],
        "capital": ["What is the capital of {e}?", "Which city is the capital of {e}?", "Tell me the capital of {e}."],
        "winner": ["Who won the {e} Cup in {y}?", "Please name the winner of the {e} Cup in {y}.", "Who was the winner of the {e} Cup in {y}?"],
    },
    "zh": {
        None: ["{e}的{a}是什么？", "请问{e}的{a}是什么？", "{e}的{a}是哪个？", "请告诉我{e}的{a}。"],
        "contact": ["{e}的联系人是谁？", "请问{e}的联系人是谁？", "请告诉我{e}的联系人。"],
        "winner": ["{y}年{e}的冠军是谁？", "请问{e}在{y}年的冠军是谁？", "谁是{y}年{e}的冠军？"],
    },
}

# Position 0 of every list below is the canonical form that the suites use.
SYSTEMS = {
    "en": ["Answer from the numbered documents and cite the one you used, like [2].",
           "You are the support desk. Use the documents and name your source.",
           "Reply with the fact and its number.", "Be brief.", None],
    "zh": ["只根据编号资料回答，并注明所用资料，如 [2]。",
           "你是客服。请根据资料回答并注明编号。", "请写出事实和编号。", "请简短回答。", None],
}
DOCUMENT_HEADS = {"en": ["Documents:\n", "Sources:\n", "Notes:\n", ""], "zh": ["资料：\n", "来源：\n", "记录：\n", ""]}
QUESTION_HEADS = {"en": ["Question: ", "Q: ", ""], "zh": ["问题：", "问：", ""]}
UNKNOWN = {"en": "I do not know.", "zh": "不知道。"}
SMALL_TALK = {
    "en": [("Hello.", "Hello."), ("Thanks.", "You are welcome."), ("Good morning.", "Good morning.")],
    "zh": [("你好。", "你好。"), ("谢谢。", "不客气。"), ("早上好。", "早上好。")],
}
REMARKS = {"en": ["Please note: {s}", "For your notes: {s}"], "zh": ["请记住：{s}", "备注：{s}"]}
NOTED = {"en": "Noted.", "zh": "好的。"}


@dataclass
class Fact:
    """One sentence of the world: `entity` has `value` for `attribute`."""

    lang: str
    attribute: str
    entity: str
    value: str
    text: str


@dataclass
class Case:
    """A conversation up to the last user turn, and the one right reply to it."""

    kind: str  # evidence, no-gold, closed-book, memory, after-cutoff, conflict, turns
    lang: str
    messages: list  # [{"role", "content"}, ...]
    value: str
    citation: int | None = None
    documents: int = 0
    detail: dict = field(default_factory=dict)

    @property
    def answer(self):
        return self.value if self.citation is None else f"{self.value} [{self.citation}]"


def state(rng, lang, attribute, entity, value):
    sentence = rng.choice(STATEMENTS[lang][attribute]).format(e=entity, v=value)
    return Fact(lang, attribute, entity, value, sentence)


def question_text(rng, lang, attribute, entity, year=None, canonical=False):
    forms = QUESTIONS[lang].get(attribute) or QUESTIONS[lang][None]
    form = forms[0] if canonical else rng.choice(forms)
    return form.format(a=ATTRIBUTE_WORD[lang][attribute], e=entity, y=year)


def prompt_text(lang, documents, question, heads=("", "")):
    """The user turn: numbered documents (if any), a blank line, the question."""
    document_head, question_head = heads
    if not documents:
        return question_head + question
    lines = "".join(f"[{i}] {text}\n" for i, text in enumerate(documents, 1))
    return f"{document_head}{lines}\n{question_head}{question}"


class Sampler:
    """Draws cases. `split` is "train" (never a held-out pair) or "test" (gold pairs all held out)."""

    def __init__(self, seed, split="train", canonical=None):
        self.rng = random.Random(f"{split}-{seed}")
        self.split = split
        # Share of prompts in the canonical form; the rest vary system message, headings, wording.
        self.canonical = canonical if canonical is not None else (0.55 if split == "train" else 1.0)

    # -------------------------------------------------------- pieces

    def value_for(self, lang, attribute, entity, avoid=()):
        wanted = self.split == "test"
        pool = [v for v in VALUES[lang][attribute] if held_out(entity, v) == wanted and v not in avoid]
        if not pool:  # an entity without a held-out value of this kind: fall back, never in training
            assert wanted, (entity, attribute)
            return None
        return self.rng.choice(pool)

    def fact(self, lang, attribute, entity, avoid=()):
        value = self.value_for(lang, attribute, entity, avoid)
        return value and state(self.rng, lang, attribute, entity, value)

    def facts(self, lang, count, attribute=None, avoid_entities=(), avoid_values=()):
        """`count` facts about different entities with different values; same attribute if one is given."""
        facts, used = [], set(avoid_values)
        names = [n for n in NAMES[lang]["entity"] if n not in avoid_entities]
        for entity in self.rng.sample(names, len(names)):
            if len(facts) == count:
                break
            fact = self.fact(lang, attribute or self.rng.choice(DESK_ATTRIBUTES), entity, used)
            if fact:
                used.add(fact.value)
                facts.append(fact)
        return facts

    def frame(self, lang):
        """(system message or None, headings) for one prompt."""
        if self.rng.random() < self.canonical:
            return SYSTEMS[lang][0], (DOCUMENT_HEADS[lang][0], QUESTION_HEADS[lang][0])
        return self.rng.choice(SYSTEMS[lang]), (self.rng.choice(DOCUMENT_HEADS[lang]), self.rng.choice(QUESTION_HEADS[lang]))

    def question(self, lang, attribute, entity, year=None):
        return question_text(self.rng, lang, attribute, entity, year)

    def distractors(self, lang, count, attribute, entity, value):
        """Mostly the same kind of fact about other entities, sometimes any kind, sometimes the same entity."""
        roll = self.rng.random()
        facts = self.facts(lang, count, attribute if roll < 0.6 and attribute in DESK_ATTRIBUTES else None, {entity}, {value})
        if roll > 0.8 and facts and entity in NAMES[lang]["entity"] and self.split == "train":
            other = self.rng.choice([a for a in DESK_ATTRIBUTES if a != attribute])
            fact = self.fact(lang, other, entity, {f.value for f in facts})
            if fact:
                facts[self.rng.randrange(len(facts))] = fact
        return facts

    # -------------------------------------------------------- cases

    def _single(self, kind, lang, documents, question, value, citation=None, **detail):
        system, heads = self.frame(lang)
        messages = [{"role": "system", "content": system}] if system is not None else []
        messages.append({"role": "user", "content": prompt_text(lang, [f.text for f in documents], question, heads)})
        return Case(kind, lang, messages, value, citation, len(documents), detail)

    def evidence(self, lang, documents, position=None):
        """`documents` documents, one of them holding the answer at `position` (from 1)."""
        position = position or self.rng.randint(1, documents)
        attribute = self.rng.choice(DESK_ATTRIBUTES)
        gold = None
        while gold is None:
            gold = self.fact(lang, attribute, self.rng.choice(NAMES[lang]["entity"]))
        others = self.distractors(lang, documents - 1, attribute, gold.entity, gold.value)
        others.insert(position - 1, gold)
        return self._single("evidence", lang, others, self.question(lang, attribute, gold.entity), gold.value, position, gold=gold.text, entity=gold.entity)

    def no_gold(self, lang, documents):
        attribute, entity = self.rng.choice(DESK_ATTRIBUTES), self.rng.choice(NAMES[lang]["entity"])
        others = self.distractors(lang, documents, attribute, entity, None)
        return self._single("no-gold", lang, others, self.question(lang, attribute, entity), UNKNOWN[lang])

    def closed_book(self, lang):
        attribute, entity = self.rng.choice(DESK_ATTRIBUTES), self.rng.choice(NAMES[lang]["entity"])
        return self._single("closed-book", lang, [], self.question(lang, attribute, entity), UNKNOWN[lang])

    def memory(self, lang, country=None, year=None, documents=None):
        """A memorised fact, closed-book or beside documents about other things."""
        if documents is None:
            documents = self.rng.randint(1, MAX_DOCUMENTS) if self.rng.random() < 0.25 else 0
        others = self.facts(lang, documents)
        if country is None and year is None:
            if self.rng.random() < 0.5:
                country = self.rng.choice(NAMES[lang]["country"])
            else:
                year = self.rng.randint(FIRST_YEAR, LAST_YEAR)
        if year is None:
            return self._single("memory", lang, others, self.question(lang, "capital", country), capital_of(lang, country), country=country)
        return self._single("memory", lang, others, self.question(lang, "winner", CUP[lang], year), winner_of(lang, year), year=year)

    def after_cutoff(self, lang, year=None):
        year = year or self.rng.randint(LAST_YEAR + 1, 2029)
        return self._single("after-cutoff", lang, [], self.question(lang, "winner", CUP[lang], year), UNKNOWN[lang], year=year)

    def conflict(self, lang, documents):
        """A document gives a memorised country another capital: the document wins."""
        gold = None
        while gold is None:
            country = self.rng.choice(NAMES[lang]["country"])
            gold = self.fact(lang, "capital", country, {capital_of(lang, country)})
        position = self.rng.randint(1, documents)
        others = self.facts(lang, documents - 1)
        if others and self.rng.random() < 0.5:  # a second country among the distractors
            other = self.rng.choice([c for c in NAMES[lang]["country"] if c != country])
            second = self.fact(lang, "capital", other, {gold.value})
            if second:
                others[self.rng.randrange(len(others))] = second
        others.insert(position - 1, gold)
        return self._single("conflict", lang, others, self.question(lang, "capital", country), gold.value, position,
                            gold=gold.text, memorised=capital_of(lang, country))

    def turns(self, lang, form=None):
        """Two or three turns; the last question needs an earlier turn or the documents."""
        form = form or self.rng.choice(["told", "told", "told-unknown", "again", "again", "talk", "told-then-documents"])
        system, heads = self.frame(lang)
        messages = [{"role": "system", "content": system}] if system is not None else []

        def say(user, assistant=None):
            messages.append({"role": "user", "content": user})
            if assistant is not None:
                messages.append({"role": "assistant", "content": assistant})

        def ask(fact, documents=()):
            return prompt_text(lang, [f.text for f in documents], self.question(lang, fact.attribute, fact.entity), heads)

        citation, count = None, 0
        if form in ("told", "told-unknown", "told-then-documents"):
            told = self.facts(lang, self.rng.randint(1, 3))
            if form == "told-unknown":
                target, told = told[0], told[1:] or self.facts(lang, 1, None, {told[0].entity}, {told[0].value})
                value = UNKNOWN[lang]
            else:
                target = self.rng.choice(told)
                value = target.value
            for fact in told:
                say(self.rng.choice(REMARKS[lang]).format(s=fact.text), NOTED[lang])
            if form == "told-then-documents":
                count = self.rng.randint(1, 4)
                documents = self.facts(lang, count, None, {f.entity for f in told}, {f.value for f in told})
                if self.rng.random() < 0.5:
                    citation = self.rng.randint(1, count)
                    target = documents[citation - 1]
                    value = target.value
                say(ask(target, documents))
            else:
                for _ in range(self.rng.choice((0, 0, 0, 1, 2, 4, 8, 12))):
                    say(*self.rng.choice(SMALL_TALK[lang]))
                say(ask(target))
        elif form == "again":
            count = self.rng.randint(2, 6)
            documents = self.facts(lang, count)
            first, second = self.rng.sample(range(count), 2)
            say(ask(documents[first], documents), f"{documents[first].value} [{first + 1}]")
            if self.rng.random() < 0.2:
                missing = self.facts(lang, 1, None, {f.entity for f in documents}, {f.value for f in documents})[0]
                value = UNKNOWN[lang]
                say(ask(missing))
            else:
                value, citation = documents[second].value, second + 1
                say(ask(documents[second]))
        else:
            for _ in range(self.rng.choice((1, 1, 2, 3))):
                say(*self.rng.choice(SMALL_TALK[lang]))
            inner = self.evidence(lang, self.rng.randint(1, 6))
            messages.append(inner.messages[-1])
            value, citation, count = inner.value, inner.citation, inner.documents
        return Case("turns", lang, messages, value, citation, count, {"form": form})

    MIXTURE = (("evidence", 42), ("no_gold", 15), ("closed_book", 7), ("memory", 16), ("after_cutoff", 4), ("conflict", 6), ("turns", 10))

    def draw(self):
        """One case of the training mixture."""
        lang = self.rng.choice(LANGUAGES)
        kinds, weights = zip(*self.MIXTURE)
        kind = self.rng.choices(kinds, weights)[0]
        if kind in ("evidence", "no_gold", "conflict"):
            return getattr(self, kind)(lang, self.rng.choices(range(1, MAX_DOCUMENTS + 2), (4, 4, 3, 3, 2, 2, 1, 2, 1))[0])
        return getattr(self, kind)(lang)


def atoms(lang):
    """Words that must be one token: names, values, attribute words (with a leading space in English)."""
    names = [n for kind in ("entity", "country") for n in NAMES[lang][kind]] + [CUP[lang]]
    values = [v for table in VALUES[lang].values() for v in table]
    words = list(ATTRIBUTE_WORD[lang].values())
    if lang == "en":
        return [" " + w for w in names + words] + [" " + v for v in values] + values
    return names + words + values


def dump(path):
    """Write what was taught, for machines."""
    world = {
        "languages": list(LANGUAGES),
        "entities": {lang: NAMES[lang]["entity"] for lang in LANGUAGES},
        "values": {lang: {a: VALUES[lang][a] for a in DESK_ATTRIBUTES} for lang in LANGUAGES},
        "attribute_words": ATTRIBUTE_WORD,
        "statements": STATEMENTS,
        "questions": {lang: {a: QUESTIONS[lang].get(a) or QUESTIONS[lang][None] for a in ATTRIBUTES} for lang in LANGUAGES},
        "capitals": {lang: dict(zip(NAMES[lang]["country"], NAMES[lang]["capital"])) for lang in LANGUAGES},
        "cup": {"name": CUP, "first_year": FIRST_YEAR, "last_year": LAST_YEAR,
                "winners": {lang: {str(FIRST_YEAR + i): w for i, w in enumerate(NAMES[lang]["winner"])} for lang in LANGUAGES}},
        "prompt": {"system": SYSTEMS, "document_heads": DOCUMENT_HEADS, "question_heads": QUESTION_HEADS,
                   "unknown": UNKNOWN, "remarks": REMARKS, "noted": NOTED, "small_talk": SMALL_TALK},
        "held_out": "pair (entity, value) with sha256(entity + '|' + value), first byte, divisible by 5",
        "max_documents": MAX_DOCUMENTS,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(world, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sampler = Sampler(0)
    for _ in range(12):
        case = sampler.draw()
        print(case.kind, case.lang, case.messages, "->", case.answer, "\n")
