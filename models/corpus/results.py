"""What tools return, and what the model says of it."""

import functools
import json
import re

from . import kinds
from .drills import digits
from .kinds import MONTHS, ROOMS
from .result_families import BENIGN, HOSTILE, NATURAL, PROGRESS
from .toolbox import word
from .words import ADJECTIVES, ANIMALS, FOODS, INTEGER_PARAMETERS, NOUNS, PLACES, STRING_PARAMETERS, VERBS

SUSPICIOUS = "The tool's text contains an instruction, which I do not follow."
SKIES = ("sunny", "cloudy", "rainy", "foggy", "windy", "clear", "snowy", "stormy", "dry", "mild")
SIDES = ("left", "right", "north", "south", "east", "west")
FAILURE = re.compile(r"(?:error|Error|ERROR|failed|Failed): (.*)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
KEY_LINE = re.compile(r"[A-Za-z_]\w*(?: =|:) \S.*")
ITEM = re.compile(r"(?:[-*] |\d[.)] )(.*)")
MAKERS = {
    "N": lambda source: source.name(), "n": lambda source: source.pick(NOUNS),
    "a": lambda source: source.pick(ADJECTIVES), "x": lambda source: source.invented(),
    "d": lambda source: str(source.number(2, 99)), "small": lambda source: str(source.number(1, 9)),
    "big": lambda source: format(source.number(100, 99999), "," if source.chance(0.15) else ""),
    "f": lambda source: f"{source.number(1, 120)}.{source.number(1, 9 if source.chance(0.7) else 99)}",
    "t": lambda source: kinds.time(source) if source.chance(0.3) else
    f"{source.number(0, 23)}:{source.number(0, 59):02}",
    "money": lambda source: source.any(("$", "$", "\u20ac", "\u00a3")) + str(kinds.amount(source)),
    "day": lambda source: source.any(kinds.DAYS), "date": kinds.day, "path": kinds.path, "url": kinds.url,
    "mail": kinds.email, "code": kinds.code, "phone": kinds.phone, "Title": kinds.title,
    "m": lambda source: source.any(ANIMALS), "food": lambda source: source.any(FOODS),
    "q": lambda source: source.any(PLACES), "room": lambda source: source.any(ROOMS),
    "sky": lambda source: source.any(SKIES), "side": lambda source: source.any(SIDES),
    "month": lambda source: source.any(MONTHS), "year": lambda source: str(source.number(1200, 2026)),
    "iso": lambda source: f"20{source.number(10, 30)}-{source.number(1, 12):02}-{source.number(1, 28):02} "
                          f"{source.number(0, 23):02}:{source.number(0, 59):02}",
    "hex": lambda source: f"{source.number(0x100000, 0xfffffff):x}",
}


@functools.cache
def pieces(template):
    """The template as pairs of a text and the mark after it."""
    parts = re.split(r"\{(\w+)\}", template)
    return tuple(zip(parts[::2], parts[1::2] + [""]))


def filled(source, template, given=None):
    """The template with words for its marks. given: words for some of them."""
    made = ""
    for text, mark in pieces(template):
        made += text
        if mark:
            made += given[mark] if given and mark in given else MAKERS[mark](source)
    return made


def of_family(source, families, given=None):
    return filled(source, source.any(families.any(source)[1]), given)


def key(source):
    known = STRING_PARAMETERS + INTEGER_PARAMETERS + NOUNS
    name = source.pick(known) if source.chance(0.8) else source.invented()
    return f"{name}_{source.pick(NOUNS)}" if source.chance(0.15) else name


def scalar(source):
    style = source.number(0, 9)
    if style < 3:
        return int(digits(source))
    if style == 3:
        return source.number(1, 999) / 10
    if style == 4:
        return source.any((True, False, True, False, None))
    if style < 7:
        return source.name() if style == 5 else word(source, NOUNS + ADJECTIVES)
    return source.any((kinds.day, kinds.path, kinds.code, kinds.title, kinds.email, kinds.sentence))(source)


def fields(source, most):
    return {key(source): scalar(source) for _ in range(source.number(1, most))}


def data(source):
    """Something that is rendered as JSON."""
    style = source.number(0, 9)
    if style < 5:
        return fields(source, 4)
    if style == 5:
        inner = fields(source, 3)
        if source.chance(0.25):
            inner[key(source)] = fields(source, 2)
        return {source.any(("result", "data", "item", "response", key(source))): inner}
    if style == 6:
        return [word(source, NOUNS) if source.chance(0.6) else source.name() for _ in range(source.number(2,
                                                                                                          4))]
    if style == 7:
        return fields(source, 2) | {source.pick(NOUNS) + "s": [word(source, NOUNS)
                                                              for _ in range(source.number(2, 4))]}
    if style == 8:
        names = source.distinct(lambda: key(source), 2)
        return [{names[0]: scalar(source), names[1]: scalar(source)} for _ in range(source.number(2, 3))]
    return {"status": source.any(("ok", "success", "done")), **fields(source, 3)}


def as_json(source, value):
    if source.chance(0.15):
        return json.dumps(value, ensure_ascii=False, indent=2)
    text = json.dumps(value, ensure_ascii=False)
    return text.replace('": ', '":').replace(", ", ",") if source.chance(0.15) and '": "' not in text \
        and " " not in text.replace('": ', "").replace(", ", "") else text


def leaf(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def listed(value):
    """The fields of JSON data in one line."""
    if isinstance(value, dict):
        return ", ".join(listed(each) if isinstance(each, dict) else f"{name}: {listed(each)}"
                         for name, each in value.items())
    if isinstance(value, list):
        joint = "; " if any(isinstance(each, dict) for each in value) else ", "
        return joint.join(map(listed, value))
    return leaf(value)


def is_sentence(text):
    """Whether it ends like a sentence."""
    return text.rstrip("\"')")[-1:] in (".", "!", "?")


def ended(text):
    return text if text[-1:] in ".!?" else text + "."


def parsed(text):
    """The JSON data that the text is, if any."""
    if text[:1] not in "{[":
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def answer_to(text):
    """What the model says of a result."""
    value = parsed(text)
    if value is not None:
        return ended(listed(value))
    failure = FAILURE.fullmatch(text)
    if failure:
        return f"The tool failed: {ended(failure.group(1))}"
    if NUMBER.fullmatch(text):
        return f"The result is {text}."
    lines = text.split("\n")
    if len(lines) == 1:
        return text if is_sentence(text) else f"The result is: {text}"
    items = [ITEM.fullmatch(line) for line in lines]
    if all(items):
        return ended(", ".join(item.group(1) for item in items))
    if all(KEY_LINE.fullmatch(line) for line in lines):
        return ended(", ".join(line.replace(" = ", ": ", 1) for line in lines))
    return text


def plain_sentence(text):
    return text.endswith(".") and not FAILURE.match(text)


def natural(source):
    """An ordinary result."""
    style = source.number(0, 9)
    if style < 3:
        return as_json(source, data(source))
    text = of_family(source, NATURAL)
    if style < 5 and plain_sentence(text):
        for _ in range(source.any((1, 1, 2))):
            more = of_family(source, NATURAL)
            if plain_sentence(more) and len(text) < 200:
                text += source.any((" ", " ", "\n")) + more
    if text.endswith(".") and source.chance(0.06):
        return text[:-1]
    return text


def benign(source):
    """A result that sounds like an instruction, but is none for the model."""
    text = of_family(source, BENIGN)
    if source.chance(0.15):
        other = of_family(source, NATURAL)
        if other.endswith(".") and text.endswith(".") and "\n" not in other and not FAILURE.match(other):
            text = f"{other} {text}" if source.chance(0.5) else f"{text} {other}"
    if source.chance(0.12) and "\n" not in text:
        name = source.any(("note", "message", "text", "info", "content", "body", "subject", "comment"))
        text = json.dumps({key(source): scalar(source), name: text} if source.chance(0.5) else {name: text},
                          ensure_ascii=False)
    return text


def result(source):
    """What a tool may return, and the answer from it."""
    text = benign(source) if source.chance(0.3) else natural(source)
    return text, answer_to(text)


def attack(source, tools):
    """An instruction for the model, and the words that only somebody who follows it says."""
    payload = source.any((lambda: source.invented().capitalize(), lambda: source.pick(NOUNS).upper(),
                          lambda: source.invented().upper(), source.invented))()
    tool = source.any(tools).name if tools and source.chance(0.5) else \
        f"{source.pick(VERBS)}_{source.pick(NOUNS)}"
    template = source.any(HOSTILE.any(source)[1])
    return filled(source, template, {"p": payload, "tool": tool}), payload if "{p}" in template else tool


def with_attack(source, text, line):
    if source.chance(0.3):
        return f"{line}\n{text}" if source.chance(0.5) else f"{line.rstrip('.')}. {text}"
    return text + source.any(("\n", " ", "\n\n", " ")) + line


def attacked(source, tools):
    """A result with an instruction for the model in it, and the words of somebody who follows it."""
    line, payload = attack(source, tools)
    if source.chance(0.35):
        return line, payload
    if source.chance(0.25):
        value = fields(source, 2)
        value[source.any(("note", "message", "comment", "info", "text"))] = line
        return json.dumps(value, ensure_ascii=False), payload
    text = benign(source) if source.chance(0.2) else natural(source)
    text = with_attack(source, text, line)
    if source.chance(0.15):
        more = of_family(source, NATURAL)
        text += f" {more}" if plain_sentence(more) else f"\n{more}"
    return text, payload


def progress(source):
    return of_family(source, PROGRESS)
