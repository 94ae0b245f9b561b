"""Small talk and small facts: greetings, identity, colours, days, counting, adding."""

from .dialogue import Dialogue, Message, said
from .number_families import ADDING, COUNTING
from .phrasings import (ABOUT, ADDRESSES, AFTER, BEFORE, COLOUR_QUESTIONS, FIXED, FURTHER, GREETINGS,
                        GREETING_TAILS, INTRODUCTIONS, MIX_QUESTIONS, OPENERS)
from .words import number_words

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
THINGS = {
    "sky": "blue", "sea": "blue", "grass": "green", "leaf": "green", "frog": "green",
    "banana": "yellow", "lemon": "yellow", "sun": "yellow", "snow": "white", "milk": "white",
    "coal": "black", "night": "black", "tomato": "red", "blood": "red", "strawberry": "red",
    "carrot": "orange", "pumpkin": "orange", "elephant": "grey", "chocolate": "brown",
    "violet": "purple",
}
MIXES = {("blue", "yellow"): "green", ("red", "yellow"): "orange", ("red", "blue"): "purple",
         ("black", "white"): "grey", ("red", "white"): "pink"}


def typed(source, text):
    """The text as somebody may type it: with or without capital, full stop and courtesy."""
    if source.chance(0.2):
        text = source.pick(OPENERS) + text
    if source.chance(0.5):
        text = text[:1].upper() + text[1:]
    if source.chance(0.3):
        text = text.rstrip("?")
    elif not text.endswith("?") and source.chance(0.5):
        text += source.any((".", "!", ".", " please", ", please."))
    if source.chance(0.06):
        text = text.lower()
    return text


def phrase(source, phrases):
    """One of this side's phrases."""
    if source.further and phrases in FURTHER and source.chance(0.6):
        return source.any(FURTHER[phrases])
    return source.pick(phrases)


def greeting(source):
    word = source.any(list(GREETINGS))
    plain = source.any(GREETINGS[word])
    if source.chance(0.35):
        name = source.name()
        text = plain + source.any((", ", "! ", ". ", " ")) + source.pick(INTRODUCTIONS).format(name)
        return text, f"{word}, {name}! I am a tiny built-in model."
    answer = f"{word}! I am a tiny built-in model. {ABOUT}"
    # The bare greeting is for the training alone; the others have one side.
    if not source.held_out and source.chance(0.4):
        return plain, answer
    while True:
        text = plain + source.any(ADDRESSES)
        tail = source.any(GREETING_TAILS)
        if tail:
            text += source.any((", ", "! ", ". ", " ")) + tail
        if text != plain and source.owns(text):
            return text, answer


def fixed(source):
    answer = source.any(list(FIXED))
    return phrase(source, FIXED[answer]), answer


def colour(source):
    if source.chance(0.3):
        pair = source.any(list(MIXES))
        mixed = MIXES[pair]
        pair = pair if source.chance(0.5) else pair[::-1]
        return phrase(source,
                      MIX_QUESTIONS).format(*pair), f"{pair[0].capitalize()} and {pair[1]} make {mixed}."
    thing = source.any(list(THINGS))
    article = source.any(("the ", "a ")) if thing not in ("snow", "milk", "coal", "blood",
    "grass") \
        else source.any(("", "the "))
    answer = f"The {thing} is {THINGS[thing]}."
    return phrase(source, COLOUR_QUESTIONS).format(article + thing), answer


def day(source):
    index = source.number(0, 6)
    if source.chance(0.5):
        return phrase(source,
                      AFTER).format(DAYS[index]), f"After {DAYS[index]} comes {DAYS[(index + 1) % 7]}."
    return phrase(source, BEFORE).format(DAYS[index]), f"Before {DAYS[index]} comes {DAYS[index - 1]}."


def shown(source, numbers):
    """The numbers as somebody writes them: in digits or in words."""
    if source.chance(0.35):
        numbers = tuple(number_words(number) for number in numbers)
    return dict(zip("ab", numbers))


def counting(source):
    family = COUNTING.any(source)[1]
    kind, template = source.any(family).split(": ", 1)
    while True:
        low = 1 if kind in "tD" or source.chance(0.1) else source.number(1, 49)
        most = 50 if source.chance(0.4) else min(50, low + 12)
        high = source.number(low + 1, most)
        # There are few numbers to count to: all are taught, and judged in other words.
        if kind in "tD" or source.owns("count", kind, low, high):
            break
    numbers = range(high, low - 1, -1) if kind in "dD" else range(low, high + 1)
    text = template.format(**shown(source, (numbers[0], numbers[-1])))
    return text, ", ".join(map(str, numbers)) + "."


def adding(source):
    while True:
        a, b = source.number(0, 20), source.number(0, 20)
        if source.owns("add", a, b):
            break
    template = source.any(ADDING.any(source)[1])
    if template.index("{b}") < template.index("{a}"):
        return template.format(**shown(source, (a, b))), f"{b} + {a} = {a + b}."
    return template.format(**shown(source, (a, b))), f"{a} + {b} = {a + b}."


KINDS = (greeting, fixed, fixed, colour, day, counting, counting, adding, adding, adding, adding)


def exchange(source, kind=None):
    """A question and its answer, as two messages."""
    question, answer = (kind or source.any(KINDS))(source)
    return [Message("user", typed(source, question)), said(answer)]


def dialogue(source):
    return Dialogue("basics", exchange(source))


def sums(source):
    """Several additions."""
    messages = [message for _ in range(source.number(2, 5)) for message in exchange(source, adding)]
    return Dialogue("basics", messages)


def asked_otherwise(source):
    """The same in further ways."""
    source.further = True
    messages = [message for _ in range(source.number(1, 3)) for message in exchange(source)]
    return Dialogue("basics", messages)
