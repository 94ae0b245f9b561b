"""Small stories, and the parser that says whether a text is one."""

import functools
import re
from dataclasses import dataclass

from .phrasings import OPENERS
from .dialogue import Dialogue, Message, said
from .source import is_held_out
from .story_families import PREPOSITION, STORIES, TAILS
from .toolbox import GLUE
from .words import ADJECTIVES, ANIMALS, FOODS, NOUNS, OBJECTS, PLACES, with_article

# Who may be a hero besides the animals.
PEOPLE = """boy girl princess prince knight king queen witch pirate farmer astronaut snowman fairy ghost dwarf
elf doctor teacher grandmother grandfather detective captain cook king mermaid unicorn kitten puppy elephant
lion tiger monkey camel snake spider ant butterfly dinosaur""".split()

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

CHARACTERS = ("brave", "little", "shy", "clever", "lazy", "curious", "old", "young", "tiny", "hungry", "kind",
              "sleepy", "grumpy", "lonely", "cheerful", "small", "wise", "silly")


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
    kind = source.any(ANIMALS + PEOPLE) if source.chance(0.8) else source.pick(NOUNS)
    about = About(source.name(), kind)
    form = source.number(0, 9)
    if form < 2:
        about.kind = ""
    elif form < 4:
        about.name = ""
    if source.chance(0.3):
        about.second = source.name() if source.chance(0.7) else f"the {source.any(ANIMALS + PEOPLE)}"
    if source.chance(0.75):
        about.place = source.any(PLACES) if source.chance(0.65) else source.pick(ODD_PLACES)
        while source.chance(0.6):
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


@functools.cache
def phrasings(family, mark, clear):
    """The family's requests of a sort. clear: whether the place is one by its name."""
    found = [text[3:] for text in family[1] if text.startswith(mark)]
    return [text for text in found if clear or PREPOSITION.search(text)]


def phrasing(source, mark, clear=True):
    """A way to ask for a story."""
    while True:
        found = phrasings(STORIES.any(source), mark, clear)
        if found:
            return source.any(found)


def somebody(source, about):
    """The hero as a request has it."""
    kind = about.kind
    if kind and source.chance(0.15):
        kind = f"{source.pick(CHARACTERS)} {kind}"
    if not kind:
        return about.name
    if not about.name:
        return source.any((with_article(kind), f"the {kind}"))
    forms = ("{0} the {1}", "{2} called {0}", "{2} named {0}", "the {1} {0}", "{0}, {2},",
             "{2} whose name is {0}")
    return source.any(forms).format(about.name, kind, with_article(kind))


def both(source, first, second):
    """Two heroes as a request has them."""
    if second.startswith("the ") and source.chance(0.15):
        return f"{first.rstrip(',')} and {source.any(('his', 'her', 'their'))} {second[4:]}"
    if second.startswith("the ") and source.chance(0.7):
        return f"{first.rstrip(',')} and {with_article(second[4:])}"
    if second[0].isupper():
        return first.rstrip(",") + source.any((" and {}", " and {}", " and a friend called {}",
                                               " and a friend named {}",
                                               " and the other hero, {},")).format(second)
    return f"{first.rstrip(',')} and {second}"


def request(source, about):
    if about is DEFAULT:
        text = phrasing(source, "n: ")
    else:
        who = somebody(source, about)
        if about.second:
            who = both(source, who, about.second)
        where = source.any((f"the {about.place}", with_article(about.place)))
        clear = not about.place or about.place.split()[-1] in PLACES
        text = phrasing(source, "p: " if about.place else "w: ", clear)
        if clear and not source.held_out and source.chance(0.12):
            text = asked_with_glue(source, bool(about.place))
        text = text.format(who=who, where=where).replace(",,", ",").replace(",.", ".").replace(",:", ":")
        text = text.rstrip(",").replace(",?", "?")
    if source.chance(0.15):
        text = source.pick(OPENERS) + text
    if source.chance(0.12) and text[-1] not in ".?!":
        text += source.pick(TAILS)
    if source.chance(0.5):
        text = text[:1].upper() + text[1:]
    if source.chance(0.5) and text[-1] not in "?.!":
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
