"""Small stories, and the parser that says whether a text is one."""

import re

from .dialogue import Dialogue, Message
from .words import ADJECTIVES, ANIMALS, FOODS, OBJECTS, PLACES

# A story walks through these stages in order; it has the first, the last, and 2 to 6 between.
STAGES = (
    ("{hero} the {kind} lived near the {place}.",
     "Once there was a {kind} called {hero}, who lived by the {place}.",
     "In the {place} there lived a {kind} named {hero}."),
    ("Every morning {hero} ate {food} and looked at the sky.",
     "{hero} liked {food} and long walks.",
     "{hero} was kind and a little shy."),
    ("One day {hero} found a {object} beside the {place}.",
     "One windy night {hero} lost a {object} in the {place}.",
     "One day {hero} heard a soft song from the {place}."),
    ("\"What is this?\" said {hero}.",
     "{hero} was surprised and sat down to think.",
     "\"I must find out more,\" said {hero}."),
    ("{hero} looked behind every stone and under every tree.",
     "{hero} walked around the {place} three times.",
     "It began to rain, but {hero} did not give up."),
    ("{other}",),
    ("Together they shared some {food}.",
     "Soon the whole {place} was full of light.",
     "Then {hero} laughed, and the birds laughed too."),
    ("In the end {hero} came home happy.",
     "That night {hero} slept well in the {place}.",
     "From then on {hero} was never lonely again."),
)
MEETINGS = {
    True: ("Then {second} came along and helped {hero}.",
           "At last {second} knew what to do.",
           "{hero} met {second}, and they became friends."),
    False: ("Then an old friend came along and helped {hero}.",
            "At last a wise owl told {hero} what to do.",
            "{hero} met a stranger, and they became friends."),
}
REQUESTS = (
    "tell me a story about {who} and {where}", "tell a story about {who} in {where}",
    "write a story about {who} at {where}", "a story about {who} and {where}",
    "can you tell me a story about {who} near {where}?", "I want a story about {who} and {where}",
    "make up a story with {who} and {where}", "tell me a small story about {who} in {where}",
    "write a short story about {who} and {where}", "tell me a tale of {who} and {where}",
    "story about {who} in {where}", "give me a story about {who} by {where}",
    "tell us a story with {who} in {where}", "let me hear a story about {who} and {where}",
    "invent a story about {who} at {where}", "I would like a story about {who} near {where}",
    "could you write a story about {who} and {where}?", "tell me something about {who} in {where}",
    "narrate a story about {who} and {where}", "a bedtime story about {who} and {where}",
    "do you know a story about {who} and {where}?", "a tale about {who} near {where}",
)


def draw(source):
    """What a story is about: (hero, kind, second hero or "", place)."""
    place = source.any(PLACES)
    while source.chance(0.8):
        both = f"{source.any(ADJECTIVES)} {source.any(PLACES)}"
        if source.owns("place", both):
            place = both
            break
    return (source.name(), source.any(ANIMALS), source.name() if source.chance(0.3) else "", place)


def told(source, hero, kind, second, place):
    middle = sorted(source.random.sample(range(1, len(STAGES) - 1), source.number(2, 6)))
    if second and 5 not in middle:
        middle = sorted(middle[1:] + [5])
    food, thing = source.any(FOODS), source.any(OBJECTS)
    sentences = []
    for stage in [0, *middle, len(STAGES) - 1]:
        template = source.any(STAGES[stage])
        if template == "{other}":
            template = source.any(MEETINGS[bool(second)])
        sentences.append(template.format(hero=hero, kind=kind, second=second, place=place,
                                         food=food, object=thing))
    return " ".join(sentences)


def patterns(hero, kind, second, place):
    """For each stage, what matches one of its sentences about these heroes and this place."""
    stages = []
    for templates in STAGES:
        if templates == ("{other}",):
            templates = MEETINGS[bool(second)]
        choices = []
        for template in templates:
            text = re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
            choices.append(text.format(hero=re.escape(hero), kind=kind, second=re.escape(second),
                                       place=place, food=f"(?:{'|'.join(FOODS)})",
                                       object=f"(?:{'|'.join(OBJECTS)})"))
        stages.append(re.compile("|".join(choices)))
    return stages


def accepted(text, hero, kind, second, place):
    """Whether the text is a story of 4 to 8 sentences in the order of the stages, each about the
    right heroes and place, naming all of them."""
    rest = text.strip()
    stages = patterns(hero, kind, second, place)
    told_stages = []
    for index, stage in enumerate(stages):
        match = stage.match(rest)
        if match:
            told_stages.append(index)
            rest = rest[match.end():].lstrip(" ")
    complete = not rest and told_stages[:1] == [0] and told_stages[-1:] == [len(stages) - 1]
    return (complete and 4 <= len(told_stages) <= 8
            and all(name in text for name in (hero, kind, second, place)))


def exchange(source):
    hero, kind, second, place = about = draw(source)
    introduced = source.any(("{} the {}", "a {1} called {0}", "a {1} named {0}", "the {1} {0}"))
    who = introduced.format(hero, kind)
    if second:
        who += source.any((" and {}", " and a friend called {}", " and a friend, {},")).format(second)
    where = source.any(("the", "a")) + " " + place
    request = source.pick(REQUESTS).format(who=who, where=where)
    if source.chance(0.5):
        request = request[:1].upper() + request[1:]
    if source.chance(0.5) and not request.endswith("?"):
        request += source.any((".", "!", ", please."))
    return [Message("user", request),
            Message("assistant", told(source, *about),
                    lambda answer: not answer.calls and accepted(answer.text, *about))]


def dialogue(source):
    return Dialogue("stories", exchange(source))
