"""Initial weights of the specimen, with its retrieval circuit and its memory planted by hand.

Trained from a random start, a model this small does not find the circuit in minutes on a CPU.
So it is built in, and training of all weights fills in the rest: the form of an answer, and when not to know.

The residual stream is divided into named fields (`FIELDS`). Token embeddings fill the first ones
(what the token is), attention heads of layers 0 and 1 fill the slots (what the token's sentence is about):

    layer 0  head 0  ENTITY     nearest entity before me           -> slot_entity, slot_language
             head 1  ATTRIBUTE  nearest attribute word before me   -> slot_attribute
             head 2  PREVIOUS   the token just before me           -> slot_previous
    layer 1  head 0  VALUE      at the answer's start: the value whose slot_entity and kind are asked
                                for -> its code, straight to the output; no match: rests on <|bos|>
             head 2  NUMBER     nearest document number, or start of a user turn -> slot_number
             head 3  YEAR       nearest digit                      -> slot_year
    layer 2  head 0  CITE       after " [": the same match again, now copying slot_number
             head 1  SOURCE     after the answer's value: same match; if it has a number, ask for " ["

The feed-forward part of layer 1 holds the memorised facts, one hidden unit each: units 0 to 39 the English
capitals, 40 to 69 the English winners by year, 70 to 139 the same in Chinese, all in the order of world.json.
Heads not named, and all other feed-forward units, start small and random.

Query heads 0,1 share one key/value head, 2,3 the other (grouped-query attention).
Rotary position: the pairs that turn fast measure distance, the pairs that hardly turn compare content.
"""

import math

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import world

D_MODEL, HEADS, KV_HEADS, D_HEAD, LAYERS, HIDDEN = 256, 4, 2, 64, 3, 384
ROPE_THETA = 1e6
HALF = D_HEAD // 2

_widths = {
    # what a token is
    "value": 32, "entity": 22, "attribute": 9, "kind": 9, "digit": 10,
    "constant": 1, "is_entity": 1, "is_attribute": 1, "is_value": 1, "is_digit": 1, "is_bracket": 1, "is_user": 1,
    "is_assistant": 1, "is_bos": 1, "is_cite": 1, "bare": 1, "language": 1,
    # what attention has found for it
    "slot_entity": 22, "slot_attribute": 9, "slot_digit": 10, "slot_bracket": 1, "slot_assistant": 1,
    "slot_language": 1, "slot_number": 10, "slot_numbered": 1, "slot_year": 20, "found": 1, "not_found": 1,
}
FIELDS, _start = {}, 0
for _name, _width in _widths.items():
    FIELDS[_name] = slice(_start, _start + _width)
    _start += _width
FIELDS["free"] = slice(_start, D_MODEL)

EMBEDDING_NORM = 2.0
FLAG = 0.6  # size of one flag in an embedding
# Gain of the RMSNorm that each layer's attention reads through: it falls as the slots fill (lengths as measured).
GAIN = [math.sqrt(D_MODEL) / length for length in (EMBEDDING_NORM, 2.48, 3.3)]
GAIN_AT_BOS = [math.sqrt(D_MODEL) / length for length in (EMBEDDING_NORM, 2.05, 2.55)]  # <|bos|> has empty slots


def spread_codes(count, width, generator, steps=300):
    """`count` unit vectors pushed apart, so that no two are alike."""
    codes = torch.nn.functional.normalize(torch.randn(count, width, generator=generator), dim=1).requires_grad_()
    optimiser = torch.optim.Adam([codes], lr=0.02)
    for _ in range(steps):
        unit = torch.nn.functional.normalize(codes, dim=1)
        likeness = unit @ unit.T - 2 * torch.eye(count)
        loss = torch.logsumexp(12 * likeness, dim=1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return torch.nn.functional.normalize(codes.detach(), dim=1)


def frequencies():
    return ROPE_THETA ** (-torch.arange(HALF, dtype=torch.float64) / HALF)


def distance_kernel(pairs, target, reach=420):
    """Query amplitudes (cos part, sin part) per rotary pair, so that a key of 1 on each pair scores target(distance)."""
    distance = torch.arange(reach, dtype=torch.float64)
    angle = distance[:, None] * frequencies()[list(pairs)]
    basis = torch.cat([angle.cos(), -angle.sin()], dim=1)
    weight = 1 / (1 + distance / 20)[:, None]
    ridge = 0.02 * torch.eye(basis.shape[1], dtype=torch.float64)
    solution = torch.linalg.solve(basis.T @ (weight * basis) + ridge, basis.T @ (weight[:, 0] * target(distance)))
    return solution[: len(pairs)], solution[len(pairs) :]


def nearest(distance):
    """High close by, falling by a constant amount whenever the distance doubles."""
    return 34 - 8 * torch.log(1 + distance / 3)


def countdown(distance):
    """Falls by the same amount with every token, so that neighbours can be told apart."""
    return 64 - 4 * distance.clamp(max=16) - 4 * torch.log(1 + (distance - 16).clamp(min=0) / 8)


def previous_kernel(pairs, size=9.0):
    """Query amplitudes like distance_kernel's, for a sharp peak one token back."""
    angle = frequencies()[list(pairs)]
    return size * angle.cos(), -size * angle.sin()


class Head:
    """Writes into the projection weights of one attention head."""

    def __init__(self, model, layer, head):
        attention = model.model.layers[layer].self_attn
        group = head // (HEADS // KV_HEADS)
        self.q = attention.q_proj.weight[head * D_HEAD : (head + 1) * D_HEAD]
        self.k = attention.k_proj.weight[group * D_HEAD : (group + 1) * D_HEAD]
        self.v = attention.v_proj.weight[group * D_HEAD : (group + 1) * D_HEAD]
        self.o = attention.o_proj.weight[:, head * D_HEAD : (head + 1) * D_HEAD]
        self.scale = math.sqrt(D_HEAD)

    def measure_distance(self, pairs, kernel, flag, gain):
        """Score by distance towards tokens carrying one of the fields in `flag`; `gain` is the norm's gain."""
        cosine, sine = kernel
        one = FLAG * gain
        for pair, c, s in zip(pairs, cosine, sine):
            self.q[pair] = 0
            self.q[pair + HALF] = 0
            self.k[pair] = 0
            self.k[pair + HALF] = 0
            strength = math.sqrt(self.scale) / one
            self.q[pair, FIELDS["constant"]] = float(c) * strength
            self.q[pair + HALF, FIELDS["constant"]] = float(s) * strength
            for name, relative in flag.items():
                self.k[pair, FIELDS[name]] = strength * relative

    def compare(self, dims, query_field, key_field, score, gain):
        """Score `score` where the code in query_field equals the code in key_field (times the codes' sizes)."""
        strength = math.sqrt(score * self.scale) / gain
        for i, dim in enumerate(dims):
            self.q[dim] = 0
            self.k[dim] = 0
            self.q[dim, FIELDS[query_field].start + i] = strength
            self.k[dim, FIELDS[key_field].start + i] = strength

    def carry(self, dims, field, gain):
        """Value dims take the code in `field`, at size one."""
        for i, dim in enumerate(dims):
            self.v[dim] = 0
            self.v[dim, FIELDS[field].start + i] = 1 / gain

    def put(self, dims, field, size=1.0, offset=0):
        """Write the value dims into `field` of the residual stream."""
        for i, dim in enumerate(dims):
            self.o[FIELDS[field].start + offset + i, dim] = size


def embeddings(tokenizer, generator):
    """Token embeddings: codes and flags for the words of the world, random vectors for everything else."""
    count = tokenizer.get_vocab_size()
    table = torch.zeros(count, D_MODEL)
    free = torch.randn(count, FIELDS["free"].stop - FIELDS["free"].start, generator=generator)

    def token(text):
        ids = tokenizer.encode(text).ids
        assert len(ids) == 1, text
        return ids[0]

    def flag(i, *names, size=FLAG):
        for name in names:
            table[i, FIELDS[name]] = size

    def code(i, name, vector):
        table[i, FIELDS[name]] = vector

    table[:, FIELDS["constant"]] = FLAG
    names = [(lang, n) for lang in world.LANGUAGES for n in world.NAMES[lang]["entity"] + world.NAMES[lang]["country"] + [world.CUP[lang]]]
    for (lang, name), vector in zip(names, spread_codes(len(names), _widths["entity"], generator)):
        i = token(" " + name if lang == "en" else name)
        flag(i, "is_entity")
        code(i, "entity", vector)
        flag(i, "language", size=FLAG if lang == "zh" else -FLAG)
    values = [(lang, a, v) for lang in world.LANGUAGES for a in world.ATTRIBUTES for v in world.VALUES[lang][a]]
    for (lang, attribute, value), vector in zip(values, spread_codes(len(values), _widths["value"], generator)):
        for text in ([" " + value, value] if lang == "en" else [value]):
            i = token(text)
            flag(i, "is_value")
            code(i, "value", vector)
            table[i, FIELDS["kind"].start + world.ATTRIBUTES.index(attribute)] = FLAG
            if lang == "en":
                table[i, FIELDS["bare"]] = -0.5 if text[0] == " " else 0.5
    for lang in world.LANGUAGES:
        for index, attribute in enumerate(world.ATTRIBUTES):
            word = world.ATTRIBUTE_WORD[lang][attribute]
            i = token(" " + word if lang == "en" else word)
            flag(i, "is_attribute")
            table[i, FIELDS["attribute"].start + index] = 1
    for digit in range(10):
        i = token(str(digit))
        flag(i, "is_digit")
        table[i, FIELDS["digit"].start + digit] = 1
    for text, name in (("[", "is_bracket"), ("<|user|>", "is_user"), ("<|assistant|>", "is_assistant"), ("<|bos|>", "is_bos"), (" [", "is_cite")):
        flag(token(text), name, size=1.0)
    table[token("<|assistant|>"), FIELDS["bare"]] = 1.0

    # Fill up to one common length with a random part, so that the first norm treats all tokens alike.
    room = EMBEDDING_NORM**2 - table.pow(2).sum(1)
    assert room.min() > 0.2, room.min()
    table[:, FIELDS["free"]] = torch.nn.functional.normalize(free, dim=1) * room.sqrt()[:, None]
    return table


ENTITY_PAIRS = range(4, 16, 2)
ATTRIBUTE_PAIRS = range(5, 17, 2)
PREVIOUS_PAIRS = range(0, 8)
NUMBER_PAIRS = [4, 10, 12, 14]
YEAR_PAIRS = [5, 6, 7, 8, 9, 11, 13, 15]
# Slow rotary pairs, both halves, for comparing content.
SLOW = [d for pair in range(16, 27) for d in (pair, pair + HALF)]  # 22 dims: entity code
SLOWER = [d for pair in range(27, 31) for d in (pair, pair + HALF)] + [15]  # 8 slow dims and one faster: attribute
FLAGS_PAIR = 31  # the slowest pair: gates and the resting place


def plant_match(head, layer, gate, gate_score=36.0, entity_score=36.0, kind_score=16.0, margin=17.0):
    """A head that looks, from gated positions, for the value that answers the question; else rests on <|bos|>."""
    gain = GAIN[layer]
    head.compare(SLOW, "slot_entity", "slot_entity", entity_score, gain)
    head.compare(SLOWER, "slot_attribute", "kind", kind_score / FLAG, gain)
    a, b = FLAGS_PAIR, FLAGS_PAIR + HALF
    for row in (a, b):
        head.q[row] = 0
        head.k[row] = 0
    strength = math.sqrt(head.scale) / gain
    head.q[a, FIELDS[gate]] = gate_score / 2 * strength
    head.k[a, FIELDS["is_value"]] = 2 * strength / FLAG
    # A value right after <|assistant|> is part of an answer, not of a document.
    head.k[a, FIELDS["slot_assistant"]] = -4 * strength
    # Everything may rest on <|bos|>: above any half match, below a full one.
    head.q[b, FIELDS["constant"]] = (gate_score + entity_score + kind_score - margin) / 6 * strength / FLAG
    head.k[b, FIELDS["is_bos"]] = 6 * math.sqrt(head.scale) / GAIN_AT_BOS[layer]


def plant_memory(feed_forward, table, token, gain, steepness=20.0, size=5.0):
    """One hidden unit for each memorised fact: it answers at the answer's start, if no document has (`found`).

    A unit's gate adds up what it wants to see, minus a threshold that only all of it together passes.
    """
    unit = 0
    for lang in world.LANGUAGES:
        space = " " if lang == "en" else ""
        entity_code = lambda name: table[token(space + name), FIELDS["entity"]]
        facts = []  # (entity, attribute, digits or None, value, threshold)
        for country in world.NAMES[lang]["country"]:
            facts.append((country, "capital", None, world.capital_of(lang, country), 2.75))
        for year in range(world.FIRST_YEAR, world.LAST_YEAR + 1):
            facts.append((world.CUP[lang], "winner", (year % 10, year // 10 % 10), world.winner_of(lang, year), 5.1))
        for entity, attribute, digits, value, threshold in facts:
            gate = feed_forward.gate_proj.weight[unit]
            up, down = feed_forward.up_proj.weight[unit], feed_forward.down_proj.weight[:, unit]
            for part in (gate, up, down):
                part.zero_()
            gate[FIELDS["slot_entity"]] = entity_code(entity)
            gate[FIELDS["slot_attribute"].start + world.ATTRIBUTES.index(attribute)] = 1
            gate[FIELDS["is_assistant"]] = 1
            gate[FIELDS["found"]] = -1
            if digits:
                last, before_last = digits
                gate[FIELDS["slot_year"].start + last] = 1.5
                gate[FIELDS["slot_year"].start + 10 + before_last] = 1.5
            gate[FIELDS["constant"]] = -threshold / FLAG
            gate.mul_(steepness / gain)
            up[FIELDS["constant"]] = 1 / (gain * FLAG)
            fully_on = steepness * (0.3 if digits else 0.2)
            down[FIELDS["value"]] = table[token(value), FIELDS["value"]] * size / fully_on
            unit += 1
    return unit


def build(tokenizer, seed=0):
    """The planted model."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    ids = {t: tokenizer.token_to_id(t) for t in ("<|bos|>", "<|end|>", "<|pad|>")}
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=D_MODEL, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=D_HEAD, max_position_embeddings=512,
        rope_theta=ROPE_THETA, rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        rms_norm_eps=1e-5, tie_word_embeddings=True, initializer_range=0.02, attention_bias=False,
        bos_token_id=ids["<|bos|>"], eos_token_id=ids["<|end|>"], pad_token_id=ids["<|pad|>"],
    )
    model = LlamaForCausalLM(config)
    table = embeddings(tokenizer, generator)
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(table)
        model.tie_weights()
        g0, g1, g2 = GAIN
        for layer in range(LAYERS):
            # What is not planted writes little at first.
            model.model.layers[layer].self_attn.o_proj.weight.mul_(0.2)
            model.model.layers[layer].mlp.down_proj.weight.mul_(0.2)

        entity, attribute, before = Head(model, 0, 0), Head(model, 0, 1), Head(model, 0, 2)
        entity.measure_distance(ENTITY_PAIRS, distance_kernel(ENTITY_PAIRS, nearest), {"is_entity": 1}, g0)
        attribute.measure_distance(ATTRIBUTE_PAIRS, distance_kernel(ATTRIBUTE_PAIRS, nearest), {"is_attribute": 1}, g0)
        entity.carry(range(0, 22), "entity", g0)
        attribute.carry(range(22, 31), "attribute", g0)
        entity.put(range(0, 22), "slot_entity")
        entity.carry([31], "language", g0)
        entity.put([31], "slot_language")
        attribute.put(range(22, 31), "slot_attribute")
        before.measure_distance(PREVIOUS_PAIRS, previous_kernel(PREVIOUS_PAIRS), {"constant": 1}, g0)
        before.carry(range(0, 10), "digit", g0)
        before.carry([10], "is_bracket", g0)
        before.carry([11], "is_assistant", g0)
        before.put(range(0, 10), "slot_digit")
        before.put([10], "slot_bracket")
        before.put([11], "slot_assistant")

        value, number, year = Head(model, 1, 0), Head(model, 1, 2), Head(model, 1, 3)
        plant_match(value, 1, "is_assistant")
        value.carry(range(0, 32), "value", g1)
        value.carry([32], "is_value", g1)
        value.carry([33], "is_bos", g1)
        value.put(range(0, 32), "value", 5.0)
        value.put([32], "found", 1 / FLAG)
        value.put([33], "not_found", 1)
        number.measure_distance(NUMBER_PAIRS, distance_kernel(NUMBER_PAIRS, nearest), {"slot_bracket": FLAG, "is_user": FLAG}, g1)
        year.measure_distance(YEAR_PAIRS, distance_kernel(YEAR_PAIRS, countdown), {"is_digit": 1}, g1)
        number.carry(range(0, 10), "digit", g1)
        year.carry(range(10, 20), "slot_digit", g1)
        number.carry([20], "is_digit", g1)
        number.put(range(0, 10), "slot_number")
        number.put([20], "slot_numbered", 1 / FLAG)
        year.put(range(0, 20), "slot_year")

        cite, source = Head(model, 2, 0), Head(model, 2, 1)
        plant_match(source, 2, "slot_assistant", margin=24.0)
        plant_match(cite, 2, "is_cite", margin=24.0)
        cite.carry(range(0, 10), "slot_number", g2)
        cite.carry([10], "slot_numbered", g2)
        cite.put(range(0, 10), "digit", 5.0)
        source.put([10], "is_cite", 6.0)

        plant_memory(model.model.layers[1].mlp, table, lambda text: tokenizer.encode(text).ids[0], g2)

        # Reading out: codes and the citation mark count, bookkeeping flags and fillers count little.
        readout = torch.full((D_MODEL,), 0.5)
        for name in ("value", "digit", "is_cite", "bare"):
            readout[FIELDS[name]] = 1.6
        for name in ("constant", "is_entity", "is_attribute", "is_value", "is_user", "is_assistant", "is_bos"):
            readout[FIELDS[name]] = 0.1
        model.model.norm.weight.copy_(readout)
    return model


if __name__ == "__main__":
    import sys

    from tokenizers import Tokenizer

    planted = build(Tokenizer.from_file(f"{sys.argv[1]}/tokenizer.json"))
    print(sum(p.numel() for p in planted.parameters()), "parameters")
