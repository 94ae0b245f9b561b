"""Small stories, and the parser that says whether a text is one."""

import re
from dataclasses import dataclass

from .phrasings import OPENERS
from .dialogue import Dialogue, Message, said
from .source import is_held_out
from .toolbox import GLUE
from .words import ADJECTIVES, ANIMALS, FOODS, NOUNS, OBJECTS, PLACES, with_article

# A story walks through these stages in order; it has the first, the last, and 2 to 6 between.
# {Hero} is {hero} at the beginning of a sentence.
OPENINGS = {
    # with a name?, with a kind?
    (True, True): ("{hero} the {kind} lived near the {place}.",
                   "Once there was {a_kind} called {hero}, who lived by the {place}.",
                   "In the {place} there lived {a_kind} named {hero}."),
    (True, False): ("{hero} lived near the {place}.",
                    "Once there was somebody called {hero}, who lived by the {place}.",
                    "In the {place} there lived somebody named {hero}."),
    (False, True): ("{A_kind} lived near the {place}.",
                    "Once there was {a_kind}, who lived by the {place}.",
                    "In the {place} there lived {a_kind}."),
}
STAGES = (
    ("Every morning {hero} ate {food} and looked at the sky.",
     "{Hero} liked {food} and long walks.",
     "{Hero} was kind and a little shy."),
    ("One day {hero} found {object} beside the {place}.",
     "One windy night {hero} lost {object} in the {place}.",
     "One day {hero} heard a soft song from the {place}."),
    ("\"What is this?\" said {hero}.",
     "{Hero} was surprised and sat down to think.",
     "\"I must find out more,\" said {hero}."),
    ("{Hero} looked behind every stone and under every tree.",
     "{Hero} walked around the {place} three times.",
     "It began to rain, but {hero} did not give up."),
    ("{meeting}",),
    ("Together they shared some {food}.",
     "Soon the whole {place} was full of light.",
     "Then {hero} laughed, and the birds laughed too."),
)
MEETING = STAGES.index(("{meeting}",))
MEETINGS = {
    True: ("Then {second} came along and helped {hero}.",
           "At last {second} knew what to do.",
           "{Hero} met {second}, and they became friends."),
    False: ("Then an old friend came along and helped {hero}.",
            "At last a wise owl told {hero} what to do.",
            "{Hero} met a stranger, and they became friends."),
}
ENDINGS = ("In the end {hero} came home happy.",
           "That night {hero} slept well in the {place}.",
           "From then on {hero} was never lonely again.")

# Who and where, and who alone; and nothing at all.
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
    "a story about {who} near {where}", "a story about {who} at {where}",
    "a story about {who} in {where}", "a story about {who} by {where}",
    "a story with {who} and {where}", "a story with {who} near {where}",
    "a small story about {who} and {where}", "a short story about {who} in {where}",
    "a tale about {who} and {where}", "a tale of {who} at {where}", "a tale of {who} in {where}",
    "a tale with {who} by {where}", "tell me about {who} and {where} in a story",
    "tell a tale about {who} near {where}", "tell a tale of {who} and {where}",
    "tell a short story about {who} and {where}", "tell a story with {who} at {where}",
    "tell me a tale about {who} near {where}", "tell me a bedtime story about {who} in {where}",
    "tell me a story of {who} near {where}", "tell me a story with {who} by {where}",
    "tell us about {who} in {where}", "please tell a story about {who} and {where}",
    "write about {who} and {where}", "write a tale about {who} in {where}",
    "write me a story about {who} by {where}", "write down a story about {who} near {where}",
    "make a story about {who} and {where}", "make up a tale about {who} near {where}",
    "make me a story with {who} at {where}", "invent a story with {who} and {where}",
    "invent a tale of {who} near {where}", "imagine a story about {who} and {where}",
    "think of a story about {who} and {where}", "can I have a story about {who} and {where}?",
    "can we have a story about {who} in {where}?",
    "can you write a story about {who} near {where}?",
    "could you tell a story of {who} near {where}?", "may I hear a story about {who} and {where}?",
    "I need a story about {who} and {where}", "I would love a story about {who} in {where}",
    "I want to hear a story about {who} near {where}", "I want a tale about {who} and {where}",
    "what about a story of {who} and {where}?", "how about a story about {who} in {where}?",
    "my story should be about {who} and {where}", "let there be a story about {who} near {where}",
    "the story of {who} and {where}", "the story of {who} in {where}",
    "once upon a time: {who} and {where}", "story: {who} and {where}",
    "story time: {who} near {where}", "read me a story about {who} and {where}",
    "show me a story about {who} in {where}",
)
# After "and", what is no place by its name would be a second hero.
WITH_A_PREPOSITION = tuple(text for text in REQUESTS if "and {where}" not in text)
WITHOUT_PLACE = (
    "tell me a story about {who}", "tell a story about {who}", "write a story about {who}",
    "a story about {who}", "can you tell me a story about {who}?", "I want a story about {who}",
    "make up a story with {who}", "tell me a small story about {who}", "a tale about {who}",
    "write a short story about {who}", "tell me a tale of {who}", "give me a story about {who}",
    "let me hear a story about {who}", "could you tell a story about {who}?",
    "invent a story about {who}", "do you know a story about {who}?", "a story with {who}",
    "a story of {who}", "a small story about {who}", "a short story about {who}",
    "a bedtime story about {who}", "a tale of {who}", "a tale with {who}",
    "tell a tale about {who}", "tell a tale of {who}", "tell a short story about {who}",
    "tell a story with {who}", "tell me a tale about {who}", "tell me a bedtime story about {who}",
    "tell me a story with {who}", "tell me the story of {who}", "tell us a story about {who}",
    "please tell a story about {who}", "write a tale about {who}", "write me a story about {who}",
    "make a story about {who}", "make up a tale about {who}", "make up a story about {who}",
    "invent a tale about {who}", "imagine a story about {who}", "think of a story with {who}",
    "can I have a story about {who}?", "can you write a story about {who}?",
    "may I hear a story about {who}?", "I need a story about {who}",
    "I would like a story about {who}", "I want to hear a story about {who}",
    "I want a tale of {who}", "how about a story about {who}?", "what about a story with {who}?",
    "the story of {who}", "story about {who}", "story: {who}", "read me a story about {who}",
    "narrate a story about {who}",
)
WITHOUT_HERO = (
    "tell me a story", "tell a story", "a story", "can you tell me a story?", "write a story",
    "tell me a short story", "I want a story", "a small story", "make up a story",
    "do you know a story?", "tell me a small story", "could you tell me a story?",
    "tell me a bedtime story", "give me a story", "I would like a story", "tell us a story",
    "any story", "story, please", "story time", "a tale", "a short story", "a bedtime story",
    "tell me a tale", "tell a tale", "tell me any story", "tell me some story",
    "tell me another story", "another story", "one more story", "write me a story",
    "write a short story", "write a tale", "make a story", "make me a story", "invent a story",
    "invent something like a story", "can I have a story?", "can you tell a story?",
    "could you write a story?", "may I hear a story?", "I need a story", "I want to hear a story",
    "I would love a story", "let me hear a story", "let us have a story", "read me a story",
    "how about a story?", "what about a story?", "do you know any stories?",
    "do you know stories?", "narrate a story", "please tell me something like a story",
)


@dataclass
class About:
    """What a story is about: the hero has a name, a kind or both; the others may be missing. A
    second hero is a name, or a kind with "the"."""

    name: str
    kind: str
    second: str = ""
    place: str = ""

    @property
    def hero(self):
        return self.name or f"the {self.kind}"


DEFAULT = About("Pip", "mouse")
ODD_PLACES = tuple(noun for noun in NOUNS if noun not in ANIMALS)


def draw(source):
    if source.chance(0.06):
        return DEFAULT
    kind = source.any(ANIMALS) if source.chance(0.8) else source.pick(NOUNS)
    about = About(source.name(), kind)
    form = source.number(0, 9)
    if form < 2:
        about.kind = ""
    elif form < 4:
        about.name = ""
    if source.chance(0.3):
        about.second = source.name() if source.chance(0.7) else f"the {source.any(ANIMALS)}"
    if source.chance(0.75):
        about.place = source.any(PLACES) if source.chance(0.8) else source.pick(ODD_PLACES)
        while source.chance(0.7):
            both = f"{source.any(ADJECTIVES)} {source.any(PLACES)}"
            if source.owns("place", both):
                about.place = both
                break
    return about


def filled(template, about, place, food="", thing=""):
    """The sentence. food, thing: without an article."""
    def first(text):
        return text[:1].upper() + text[1:]

    kind = with_article(about.kind) if about.kind else ""
    return template.format(hero=about.hero, Hero=first(about.hero), kind=about.kind, a_kind=kind,
                           A_kind=first(kind), second=about.second, place=place, food=food,
                           object=with_article(thing) if thing else "")


def stages(about):
    """The sentences of each stage of a story about these."""
    meetings = MEETINGS[bool(about.second)]
    return (OPENINGS[bool(about.name), bool(about.kind)],
            *(meetings if templates == STAGES[MEETING] else templates for templates in STAGES),
            ENDINGS)


def told(source, about):
    inner = source.random.sample(range(1, len(STAGES) + 1), source.number(2, 6))
    if about.second and MEETING + 1 not in inner:
        inner[0] = MEETING + 1
    place = about.place or source.any(PLACES)
    food, thing = source.any(FOODS), source.any(OBJECTS)
    templates = stages(about)
    return " ".join(filled(source.any(templates[stage]), about, place, food, thing)
                    for stage in [0, *sorted(inner), len(templates) - 1])


def accepted(text, about):
    """Whether the text is a story of 4 to 8 sentences in the order of the stages, each about the
    right heroes and place, naming all of them."""
    places = [about.place] if about.place else PLACES
    wanted = [name for name in (about.name, about.kind, about.second, about.place) if name]
    return (all(name in text for name in wanted)
            and any(in_order(text.strip(), about, place) for place in places if place in text))


def in_order(rest, about, place):
    found = []
    for index, templates in enumerate(stages(about)):
        for template in templates:
            sentence = re.escape(filled(template, about, place, "FOOD", "OBJECT"))
            sentence = sentence.replace("FOOD", f"(?:{'|'.join(FOODS)})").replace(
                re.escape("an OBJECT"), f"(?:{'|'.join(map(with_article, OBJECTS))})")
            match = re.match(sentence, rest)
            if match:
                found.append(index)
                rest = rest[match.end():].lstrip(" ")
                break
    return not rest and 4 <= len(found) <= 8 and found[0] == 0 and found[-1] == len(STAGES) + 1


def asked_with_glue(source, with_place):
    """A request for the training, in words that only hold it together."""
    start = source.any(("story", "a story", "tell me a story", "tale", "a tale", "write a story"))
    while True:
        words = [source.any(GLUE) for _ in range(4)]
        made = f"{start} {' '.join(words[:source.number(0, 2)])} {{who}}"
        if with_place:
            made += f" {' '.join(words[2:source.number(3, 4)])} {{where}}"
        if not is_held_out(made):
            return made.replace("  ", " ")


def request(source, about):
    if about is DEFAULT:
        text = source.pick(WITHOUT_HERO)
    else:
        who = about.name or source.any((with_article(about.kind), f"the {about.kind}"))
        if about.name and about.kind:
            who = source.any(("{0} the {1}", "{2} called {0}", "{2} named {0}", "the {1} {0}"))\
                .format(about.name, about.kind, with_article(about.kind))
        second = about.second
        if second.startswith("the ") and source.chance(0.7):
            second = with_article(second[4:])
        if second:
            forms = (" and {}", " and a friend called {}", " and a friend, {},")
            who += (source.any(forms) if second == about.second and second[0].isupper()
                    else forms[0]).format(second)
        where = source.any((f"the {about.place}", with_article(about.place)))
        clear = not about.place or about.place.split()[-1] in PLACES
        text = source.pick(WITHOUT_PLACE if not about.place
                           else REQUESTS if clear else WITH_A_PREPOSITION)
        if clear and not source.held_out and source.chance(0.15):
            text = asked_with_glue(source, bool(about.place))
        text = text.format(who=who, where=where)
    if source.chance(0.15):
        text = source.pick(OPENERS) + text
    if source.chance(0.5):
        text = text[:1].upper() + text[1:]
    if source.chance(0.5) and not text.endswith("?"):
        text += source.any((".", "!", ", please."))
    return text


def exchange(source, about):
    return [Message("user", request(source, about)),
            Message("assistant", told(source, about),
                    lambda answer: not answer.calls and accepted(answer.text, about))]


def dialogue(source):
    return Dialogue("stories", exchange(source, draw(source)))


def of_companions(source):
    """A story of two, most often with a second hero who has no name and could be taken for a place."""
    about = draw(source)
    while about is DEFAULT:
        about = draw(source)
    about.second = f"the {source.any(ANIMALS)}" if source.chance(0.75) else source.name()
    return Dialogue("stories", exchange(source, about))


def cast(source):
    """An exercise: who is in a story, and where it is."""
    messages = []
    for _ in range(source.number(1, 4)):
        about = draw(source)
        if about is not DEFAULT and source.chance(0.3):
            about.second = f"the {source.any(ANIMALS)}"
        heroes = [" the ".join(filter(None, (about.name, about.kind))) if about.name else about.hero]
        heroes += filter(None, [about.second])
        place = f"the {about.place}" if about.place else "anywhere"
        messages += [Message("user", "who and where? " + request(source, about)),
                     said(f"{' and '.join(heroes)}; {place}")]
    return Dialogue("cast", messages)
