"""Requests for realistic tools, and for ones that nobody has seen, by families of phrasings."""

import functools
import re

from .call_families import CALLS, CONTEXTS, FILLERS, KEYED, SWITCHED
from .catalogue import ENTRIES, SIDES, Entry
from .dialogue import Tool
from .kinds import (ORDINARY, amount, city, currency_value, hung, path, person, recipient, spoken, type_of,
                    value_of)
from .toolbox import DESCRIPTIONS, Request, subject, word
from .words import NOUNS, STRING_PARAMETERS, VERBS, third_person

SLOT = re.compile(r"\{(\d)\}")
PRONOUN = re.compile(
    r"\{0\}(?:$|[,:]| (?:to|into|on|at|by|from|for|as|in|out|over|with|and|up|down|off|away) )")
NOUNS_BEFORE = ("the a good account user email mail order ticket task colleague parcel flight stock number"
                " item list film movie playlist sensor pump podcast note file page key table book issue"
                " directory folder branch status event appointment timer countdown called titled doc check"
                " message at to").split()
NOUN_BEFORE = re.compile(rf"\b(?:{'|'.join(NOUNS_BEFORE)}) \{{0\}}")
PREFIXES = ("api", "mcp", "srv", "app", "my", "tools", "core", "v1", "sys", "main", "home", "data", "github",
            "slack", "fs", "jira", "notes", "shop", "calendar", "web", "db", "k8s", "iot", "office")
DETAILS = (". Returns JSON.", ". Returns text.", ". Read only.", ". Needs no login.", " via the API.",
           " and returns the result.", ". Fails if there is none.", ". May take some time.",
           ". Changes data.",
           ". Ask before you use it.", " (beta)", ". Results are sorted.", " of the workspace.",
           " for the current user.",
           ". Optional values have defaults.", ". Call it once.", ". Use this when somebody asks for it.")
SMALL_WORDS = set("a an the of to in on at for is it and or my me with up down that this what how you do does"
                  " are i by from into out there be as has have which when who some something".split())


def styled(source, words):
    """The words as a tool's name."""
    if source.chance(0.2) and len(words) == 2:
        words = words[::-1]
    if source.chance(0.12):
        words = [source.any(PREFIXES) if source.chance(0.5) else source.invented(), *words]
    style = source.number(0, 12)
    if style == 12 and len(words) > 1:
        joint = source.any(("__", ".", "_", "-", "/"))
        return f"{source.any(PREFIXES)}{joint}{source.any(('_', '-')).join(words)}"
    if style < 6:
        return "_".join(words)
    if style < 8:
        return words[0] + "".join(part.capitalize() for part in words[1:])
    if style < 10:
        return "-".join(words)
    if style == 10:
        return "".join(part.capitalize() for part in words)
    return words[0] + "." + "_".join(words[1:]) if len(words) > 1 else words[0]


def keys_for(source, kinds):
    """A name for the parameter of each kind."""
    keys = []
    for kind in kinds:
        key = source.any(kind.keys[:2]) if source.chance(0.5) else source.any(kind.keys)
        if source.chance(0.06):
            key = f"{source.pick(NOUNS)}_{key}"
        if "_" in key and source.chance(0.2):
            first, *rest = key.split("_")
            key = first + "".join(part.capitalize() for part in rest)
        while key in keys:
            key = source.pick(STRING_PARAMETERS) + "_" + key
        keys.append(key)
    return keys


def invented_entry(source):
    """What nobody has heard of: a verb, a thing and some parameters."""
    verb, thing = word(source, VERBS), subject(source)
    verbs = third_person(verb)
    descriptions = tuple(source.pick(DESCRIPTIONS).format(
        verb=verb, Verb=verb.capitalize(), verbs=verbs, Verbs=verbs.capitalize(),
        thing=thing) for _ in range(2))
    kinds = []
    for _ in range(source.any((0, 1, 1, 2, 2, 3))):
        kind = source.any(ORDINARY)
        if clashing(kind, kinds) or kind.type == "boolean" and not kinds:
            continue
        kinds.append(kind)
    articles = source.random.sample(("the", "a", "my", "this", "our", "that", ""), 3)
    return Entry("invented", (f"{verb} {thing}",), descriptions,
                 tuple(" ".join(filter(None, (verb, article, thing))) for article in articles), (), (),
                 tuple((kind, index == 0 or source.chance(0.6)) for index, kind in enumerate(kinds)))


def clashing(kind, kinds):
    """Whether a value of this kind could be taken for one of the others."""
    return any(kind.make is other.make and kind.type == other.type or set(kind.hanging) & set(other.hanging)
               for other in kinds)


def tool_of(source, entry):
    """A tool as a server might offer the entry."""
    keys = keys_for(source, [kind for kind, _ in entry.parameters])
    parameters = [(key, type_of(source, kind), required)
                  for key, (kind, required) in zip(keys, entry.parameters)]
    # A server may not have all that is optional.
    parameters = [each for each in parameters if each[2] or source.chance(0.75)]
    if source.chance(0.35):
        source.random.shuffle(parameters)
    text = source.any(entry.descriptions) + source.any(("", "", "."))
    style = source.number(0, 9)
    if style < 2 and entry.sayings:
        text = source.any(entry.descriptions) + ". Use it to " + source.any(entry.deeds)
    elif style < 4:
        deed = source.any(entry.deeds)
        text = deed[:1].upper() + deed[1:]
    if source.chance(0.2):
        text = text.rstrip(".") + source.pick(DETAILS)
    name = source.any(entry.names).split()
    return Tool(styled(source, name), text, parameters), dict(zip(keys, entry.parameters))


@functools.cache
def known_words(entry):
    """The beginnings of the words of the entry's names and descriptions."""
    text = " ".join(entry.names + entry.descriptions).lower()
    return {each[:4] for each in re.findall(r"[a-z]+", text) if each not in SMALL_WORDS}


@functools.cache
def near(entry):
    """The entry with the wordings alone that share a word with its names or descriptions."""
    known = known_words(entry)

    def kept(wordings):
        return tuple(each for each in wordings
                     if known & {part[:4] for part in re.findall(r"[a-z]+", each.lower())
                                 if part not in SMALL_WORDS})
    return Entry(entry.domain, entry.names, entry.descriptions, kept(entry.deeds) or entry.deeds[:1],
                 kept(entry.sayings), kept(entry.questions), entry.parameters)


@functools.cache
def of_it(entry):
    """The entry's deeds in which "it" may stand for the first value."""
    return tuple(each for each in entry.sayings if PRONOUN.search(each) and not NOUN_BEFORE.search(each))


class Asked:
    """A request in the making: a tool's values, and which of them have been said."""

    def __init__(self, source, entry, tool, kinds, family):
        self.source, self.entry, self.tool = source, entry, tool
        _, self.mode, self.keyed_by, self.sentences = family
        self.kinds = {key: kinds[key][0] for key, _, _ in tool.parameters}
        self.has_currency = any(kind.make is currency_value for kind, _ in kinds.values())
        self.keys = list(kinds)  # in the order of the entry's slots
        self.arguments, self.said, self.open_end = {}, set(), False
        for key, json_type, required in tool.parameters:
            if required or source.chance(0.55):
                self.give(key, json_type)

    def give(self, key, json_type):
        kind = self.kinds[key]
        for _ in range(9):
            value = value_of(self.source, kind, json_type)
            if value not in self.arguments.values():
                break
        self.arguments[key] = value

    def spoken(self, key, quote=0.15, last=False):
        """The key's value as it is said. last: whether nothing follows it."""
        self.said.add(key)
        kind = self.kinds[key]
        bare = self.long(key) and last and self.open_end and self.source.chance(0.6)
        if bare:
            self.arguments[key] = self.arguments[key].rstrip(".!?")
        said = spoken(self.source, kind, self.arguments[key], 0.0 if bare else quote, bare)
        if kind.make is amount and not self.has_currency and self.source.chance(0.35):
            return self.source.any(("${}", "\u20ac{}", "{} euros", "{} dollars", "{} EUR")).format(said)
        return said

    def long(self, key):
        return self.kinds[key].long(self.arguments[key])

    def left(self):
        return [key for key in self.arguments if key not in self.said]

    def plain(self, key):
        return key.replace("_", " ") if self.source.chance(0.5) else key

    def slotted(self, wording, instead=None):
        """The wording with its values. instead: for the first one."""
        def value(match):
            key = self.keys[int(match.group(1))]
            if instead and match.group(1) == "0":
                return instead
            last = match.end() == len(wording) and all(each in self.said
                                                       for each in self.arguments if each != key)
            return self.spoken(key, last=last)
        return SLOT.sub(value, wording)

    def fitting(self, wordings):
        """Those of the wordings whose values there are."""
        return [each for each in wordings
                if all(self.keys[int(slot)] in self.arguments for slot in SLOT.findall(each))]

    def named(self, key, phrases=None, last=False):
        """A value with its parameter."""
        phrase = self.source.any(phrases or KEYED[self.keyed_by])
        return phrase.format(p=self.plain(key), v=self.spoken(key, last=last and phrase.endswith("{v}")))

    def rest(self):
        """What has not been said, hung to the sentence."""
        text, used = "", set()
        keys = self.left()
        if self.source.chance(0.6):
            self.source.random.shuffle(keys)
        keys.sort(key=lambda each: 2 * self.long(each) + (self.kinds[each].type == "boolean"))
        for key in keys:
            kind = self.kinds[key]
            if kind.type == "boolean":
                text += self.named(key, SWITCHED)
                continue
            phrase = hung(self.source, kind, self.arguments[key], self.spoken(key, last=key == keys[-1]))
            if phrase.split()[0] in used:
                phrase = self.named(key, KEYED["with"])
            used.add(phrase.split()[0])
            text += phrase
        return text

    def deed(self):
        """What to do, with values in their places."""
        wordings = self.fitting(self.entry.sayings)
        wording = self.source.any(wordings) if wordings and self.source.chance(0.8) \
            else self.source.any(self.entry.deeds)
        text = self.slotted(wording)
        if self.mode != "mixed":
            rest = self.rest()
            if rest and self.mode == "do" and not any(map(self.long,
                                                          self.arguments)) and self.source.chance(0.12):
                return f"{rest.strip()}, {text}"
            return text + rest
        return text + self.all_named(self.left())

    def all_named(self, keys):
        return "".join(self.named(key, last=key == keys[-1]) for key in keys)

    def question(self):
        wordings = self.fitting(self.entry.questions)
        if not wordings:
            return "can you " + self.deed()
        return self.slotted(self.source.any(wordings)) + self.rest()

    def ahead(self):
        """The values with their parameters, before what to do."""
        keys = self.left()
        self.source.random.shuffle(keys)
        joint = self.source.any((", ", " and ", ", ", "; "))
        return joint.join(self.source.any(("{p} {v}", "{p}: {v}", "the {p} {v}", "{p} = {v}")).format(
            p=self.plain(key), v=self.spoken(key)) for key in keys)

    def vals(self):
        keys = self.left()
        if self.source.chance(0.5):
            self.source.random.shuffle(keys)
        return self.all_named(keys)

    def opening_key(self):
        """The parameter whose value may be said first."""
        for key in self.arguments:
            kind = self.kinds[key]
            if kind.type == "string" and not self.long(key):
                return key
        return None

    def context(self):
        """A clause with the value that is said first."""
        key = self.keys[0]
        make = self.kinds[key].make
        group = "city" if make is city else "path" if make is path else \
            "person" if make in (person, recipient) else ""
        return self.source.pick(CONTEXTS[group]).format(v=self.spoken(key))

    def about_it(self):
        """A deed on the value that was said first."""
        kind = self.kinds[self.keys[0]]
        wording = self.source.any(self.fitting(of_it(self.entry)))
        if kind.make is city:
            wording = wording.replace("in {0}", "there").replace("to {0}", "there").replace("at {0}", "there")
        return self.slotted(wording, "it") + self.rest()

    def fits(self):
        """Whether the family's mode can be had with this tool and these values."""
        key = self.opening_key()
        if self.mode in ("it", "context"):
            return key is not None and key == self.keys[0] and self.kinds[key].name != "errand" \
                and bool(self.fitting(of_it(self.entry)))
        if self.mode == "before":
            return bool(self.arguments) and not any(self.long(each) or self.kinds[each].type == "boolean"
                                                    for each in self.arguments)
        return key is not None or self.mode not in ("first", "ahead")

    def text(self):
        source = self.source
        while not self.fits():
            _, self.mode, self.keyed_by, self.sentences = CALLS.any(source)
        sentence = source.any(self.sentences)
        self.open_end = sentence.rstrip(".!?").endswith("}")
        fills = {"f": source.pick(FILLERS) if "{f}" in sentence.lower() else ""}
        if self.mode in ("first", "it"):
            fills["first"] = self.spoken(self.opening_key(), 0.3)
        if self.mode == "context":
            fills["context"] = self.context()
        if self.mode in ("do", "mixed"):
            fills["do"] = self.deed()
        elif self.mode == "ask":
            fills["ask"] = self.question()
        elif self.mode in ("it", "context"):
            fills["it"] = self.about_it()
        elif self.mode == "name":
            name = self.tool.name if source.chance(0.35) else source.any(self.entry.names)
            fills |= {"name": name, "rest": self.rest()}
        else:
            fills["bare"] = source.any(self.entry.deeds)
            if self.mode == "before":
                fills["rest"] = self.rest().strip()
            elif self.mode == "first" and source.chance(0.6):
                fills["vals"] = self.rest()
            else:
                fills["vals"] = self.ahead() if self.mode == "ahead" else self.vals()
        for name in tuple(fills):
            fills[name.capitalize()] = fills[name][:1].upper() + fills[name][1:]
        return sentence.format(**fills)


def request_for(source, entry, tool, kinds, family=None):
    """A request that the tool fits."""
    asked = Asked(source, near(entry) if source.held_out else entry, tool, kinds, family or CALLS.any(source))
    text = asked.text()
    order = {key: asked.arguments[key] for key, _, _ in tool.parameters if key in asked.arguments}
    made = Request(text, tool, order)
    made.entry, made.kinds = entry, kinds
    return made


def natural_request(source, entry=None):
    """A request for a realistic tool, or for one nobody has seen."""
    entry = entry or (source.any(SIDES[source.held_out]) if source.chance(0.75) else invented_entry(source))
    tool, kinds = tool_of(source, entry)
    return request_for(source, entry, tool, kinds)


def others_for(source, request, count):
    """Requests for other tools, some of the same domain."""
    requests = [request]
    domain = request.entry.domain
    same = [entry for entry in SIDES[source.held_out]
            if entry.domain == domain and entry is not request.entry]
    taken = {request.entry.names[0]}
    while len(requests) <= count:
        entry = source.any(same) if same and source.chance(0.35) else None
        other = natural_request(source, entry)
        if other.entry.names[0] in taken or other.tool.name in [each.tool.name for each in requests]:
            continue
        taken.add(other.entry.names[0])
        requests.append(other)
    source.random.shuffle(requests)
    return requests


def asked_again(source, request):
    """Another request for the same tool."""
    return request_for(source, request.entry, request.tool, request.kinds)


__all__ = ["ENTRIES", "asked_again", "natural_request", "others_for"]
