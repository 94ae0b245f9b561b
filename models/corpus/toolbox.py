"""Tools nobody has seen before, and ways of asking for them."""

from dataclasses import dataclass

from .dialogue import Tool
from .drills import identifier
from .source import is_held_out
from .words import ADJECTIVES, INTEGER_PARAMETERS, NOUNS, STRING_PARAMETERS, VERBS, third_person

DESCRIPTIONS = ("{Verbs} the {thing}", "{Verb} the {thing}", "{Verbs} a {thing}",
                "Use this to {verb} the {thing}", "{Verb} one {thing}", "{Verbs} any {thing}",
                "Lets you {verb} the {thing}", "{Verb} a {thing} for the user", "{Verbs} {thing}",
                "Can {verb} a {thing}", "A tool that {verbs} the {thing}", "Tool to {verb} a {thing}",
                "This tool {verbs} {thing}s", "When somebody wants to {verb} the {thing}",
                "Will {verb} a {thing}", "{Verb} {thing}s", "Helps to {verb} the {thing}",
                "Call this to {verb} a {thing}", "Makes it possible to {verb} a {thing}",
                "Used to {verb} {thing}s", "To {verb} the {thing}", "Allows users to {verb} a {thing}",
                "API to {verb} a {thing}", "{Verbs} your {thing}", "{Verbs} some {thing}")
# A request is an opening, a verb, an article and a thing.
USUAL_OPENINGS = ("", "please", "can you", "could you", "I want to")
OPENINGS = (
    "would you", "will you", "I want you to",
    "I need to", "I need you to", "I have to", "I must", "I would like to", "I'd like to",
    "I'd like you to", "I wish to", "help me", "help me to", "you should", "you must", "you can",
    "you may", "now", "go and", "go ahead and", "just", "simply", "let us", "let's", "let me",
    "we need to", "we have to", "we should", "we want to", "try to", "kindly", "could you please",
    "can you please", "would you please", "would you kindly", "can we", "could we", "may I", "can I",
    "is it possible to", "are you able to", "it is time to", "time to", "your task is to",
    "your job is to", "the next step is to", "next,", "then", "first,", "quickly",
    "use a tool to", "use the right tool to", "call a tool to", "use your tools to",
    "please use a tool to", "make sure to", "be so kind and", "do me a favour and",
    "somebody should", "how about you", "I am trying to", "I was told to", "my boss wants me to",
    "they asked me to", "we are going to", "I am going to", "I'm here to", "immediately",
    "today I want to", "tonight we must", "tomorrow I have to", "hi,", "ok,", "so,", "well,",
    "hello, please", "hey, can you", "right,", "again,", "once more,", "if you can,",
    "when you are ready,", "for me,", "as soon as possible,", "one more thing:", "my request:",
    "task:", "hello, I want to", "good morning, please", "do", "it would be nice to",
    "I am asking you to", "get ready to", "start to", "why don't you", "you have to", "remember to",
    "don't forget to", "I expect you to", "I hope you can", "do you think you can", "mind to",
)
ARTICLES = ("the", "a", "my", "this", "one", "", "that", "our", "your", "any", "another", "some",
            "every", "their", "his", "her", "the same", "a new", "the whole")
# For tools that find something out, people also ask for the thing alone.
FINDING = ("get", "find", "show", "list", "search", "check", "read", "fetch")
QUESTIONS = ("what is the {thing}", "what's the {thing}", "how is the {thing}", "I need the {thing}",
             "tell me the {thing}", "give me the {thing}", "do you know the {thing}",
             "I want to know the {thing}", "which {thing} is there", "what are the {thing}s",
             "can you tell me the {thing}", "what is the current {thing}", "I want the {thing}",
             "could you give me the {thing}", "let me see the {thing}")
DETAILS = (" by its {parameter}", " for the given {parameter}", " and returns the result",
           " in the database", " of the current user", " with the given {parameter}",
           ", if there is one", ". Returns text", " by {parameter}", ". The {parameter} is needed",
           " that matches the {parameter}", " in one step", ". Use it only when asked")
USUAL_VALUE = (" for {v}", " of {v}", " about {v}", " in {v}", " {v}")
ONLY_VALUE = (" called {v}", " named {v}", ": {v}", " for just {v}", " of type {v}", " only {v}", " with {v}",
              " from {v}", " at {v}", " on {v}", " to {v}", " by {v}", " into {v}",
              " near {v}", " under {v}", " as {v}", " using {v}", " like {v}", ", namely {v}",
              " - {v}", ", {v}", " = {v}", " over {v}", " after {v}", " via {v}", " against {v}")
USUAL_KEYED = (" with {p} {v}", " and {p} {v}", ", {p} {v}")
KEYED = (" with the {p} {v}", ", {p} = {v}",
         ", {p}: {v}", " using {v} as {p}", " where {p} is {v}", " with {v} as the {p}",
         ", the {p} is {v}", " and the {p} is {v}", " with {p} set to {v}", " ({p} {v})",
         ", {p} should be {v}", " having {p} {v}", " whose {p} is {v}", " and make the {p} {v}",
         "; {p}: {v}", " - {p}: {v}", ", with {v} for the {p}", " and use {v} for {p}", " {p}={v}",
         " [{p} {v}]", ", as {p} take {v}", " for the {p} {v}", ", {p} must be {v}",
         ". The {p} is {v}", ". {p}: {v}", " and {v} as {p}", ", whose {p} should be {v}",
         " under the {p} {v}", ", set {p} to {v}", " and set the {p} to {v}", ", {v} is the {p}")
USUAL_COUNTED = (" for {v} {p}", " {v} {p}")
COUNTED = ( ", {v} {p}", " with {v} {p}", " over {v} {p}", " in {v} {p}",
           " at {v} {p}", " using {v} {p}", ", make it {v} {p}", " and {v} {p}", ": {v} {p}")
USUAL_CLOSINGS = (".", "?", "!", " please")
CLOSINGS = (", please", ", thanks", ", now", ", for me", ", today", ", ok?",
            ", will you?", ", if you can", ", quickly", ", thank you", ", as soon as possible", "...")

# Words that only hold a request together. The training also strings them together at random, so
# that the model goes by the names and the values rather than by what stands between them.
GLUE = ("a the as at be by for from given goes has have here in into is it its just keep let like make"
        " must my need of on one only or our out over per please put say set should so some such take"
        " that then there this to under until up use using via want we which while whose with you your"
        " being equal gets reads means comes needs wants called being also now value named").split()
SEPARATORS = (" ", " ", " ", ", ", ", ", "; ", " - ", ". ", ": ", " (", " and ", " with ")
BINDINGS = (" ", " ", " ", "=", ": ", " = ", " -> ", ", ")
BRACKETS = ((" (", ")"), (" [", "]"), (" {{", "}}"), (" <", ">"), (" |", "|"), (" /", "/"), (", [", "]"),
            (": [", "]"))
STRUNG, STRUNG_ODDLY = 0.4, 0.75


def strung(source, *marks):
    """A phrase for the training: the marks, with glue around them."""
    if len(marks) > 1 and source.chance(0.3):
        marks = marks[::-1]
    while True:
        made = source.any(SEPARATORS)
        for index, mark in enumerate(marks):
            words = [source.any(GLUE) for _ in range(source.any((0, 0, 1, 1, 2)))]
            if index > 0:
                made += source.any(BINDINGS) if not words else " "
            made += "".join(word + " " for word in words) + mark
        if "(" in made:
            made += ")"
        if source.odd_requests and source.chance(0.3):
            left, right = source.any(BRACKETS)
            made = left + made.strip(" ,;.:-()") + right
        if not is_held_out(made):
            return made


def value_phrase(source, templates, usual, *marks):
    """A phrase that gives a value."""
    if source.held_out or not source.chance(STRUNG_ODDLY if source.odd_requests else STRUNG):
        return source.pick(templates, usual)
    return strung(source, *marks)


def opening(source):
    if source.held_out or not source.chance(STRUNG / 2):
        return source.pick(OPENINGS, USUAL_OPENINGS)
    while True:
        made = " ".join(source.any(GLUE) for _ in range(source.number(1, 4)))
        if not is_held_out(made):
            return made


@dataclass
class Request:
    """What a user asks, the tool that fits, and the arguments it needs."""

    text: str
    tool: Tool
    arguments: dict
    verb: str = ""
    thing: str = ""
    entry: object = None  # of the catalogue, and the kinds of its parameters, if it is natural
    kinds: object = None


def word(source, words):
    """Mostly a known word. The training has more words that nobody knows, lest it learn the names
    by heart."""
    invented = 0.25 if source.held_out else 0.4
    return source.invented() if source.chance(invented) else source.pick(words)


def tool_name(source, verb, thing):
    words = [verb, *thing.split()]
    if source.chance(0.6 if source.odd_names else 0.2):
        words = words[1:] + words[:1]
    if source.chance(0.1):
        words = words[1:] if len(words) > 2 else words
    style = source.number(3 if source.odd_names else 0, 9)
    if style < 6:
        return "_".join(words)
    if style < 8:
        return words[0] + "".join(part.capitalize() for part in words[1:])
    return "-".join(words)


def parameters(source):
    count = source.any((1, 2, 2, 3, 3) if source.odd_order else (0, 1, 1, 1, 1, 2, 2, 2, 3))
    found = []
    for index in range(count):
        kind = source.any(("string", "string", "string", "integer", "integer", "number", "boolean"))
        if kind == "boolean" and not found:
            kind = "integer"
        names = INTEGER_PARAMETERS if kind in ("integer", "number") else STRING_PARAMETERS
        name = word(source, names)
        if not source.held_out and source.chance(0.2):
            name = compound(source, name)
        if name not in [other for other, _, _ in found]:
            found.append((name, kind, index == 0 or source.chance(0.7)))
    return sorted(found, key=lambda parameter: not parameter[2])


def compound(source, name):
    """A parameter's name of two words."""
    words = [name, word(source, NOUNS) if source.chance(0.7) else source.any(("id", "ms", "max", "by"))]
    source.random.shuffle(words)
    if source.chance(0.3):
        return words[0] + words[1].capitalize()
    return source.any(("_", "_", "-")).join(words)


def value_of(source, kind):
    if kind == "integer":
        return source.number(0, 10 ** source.number(1, 4))
    if kind == "number":
        return source.number(0, 999) + source.any((0.5, 0.25, 0.1, 0.75))
    if kind == "boolean":
        return source.chance(0.7)
    style = source.number(0, 9)
    if style < 4:
        return " ".join(source.name() for _ in range(source.any((1, 1, 1, 2))))
    if style < 6:
        return identifier(source)
    return " ".join(word(source, NOUNS + ADJECTIVES) for _ in range(source.any((1, 1, 2, 2, 3))))


def spoken(source, kind, value):
    if kind == "boolean":
        return "true" if value else "false"
    if kind != "string":
        return str(value)
    quote = source.any(('"', "", "", "'"))
    return quote + value + quote


def subject(source):
    thing = word(source, NOUNS)
    return f"{word(source, ADJECTIVES + NOUNS)} {thing}" if source.chance(0.4) else thing


def tool_for(source, verb, thing):
    """A tool that does this to the thing."""
    expected = parameters(source)
    verbs = third_person(verb)
    description = source.pick(DESCRIPTIONS).format(verb=verb, Verb=verb.capitalize(), verbs=verbs,
                                                   Verbs=verbs.capitalize(), thing=thing)
    if source.chance(0.3):
        detail = source.pick(DETAILS)
        if expected or "{parameter}" not in detail:
            description += detail.format(parameter=expected[0][0] if expected else "")
    return Tool(tool_name(source, verb, thing), description + source.any(("", ".")), expected)


def phrases(source, tool, arguments):
    """What a request says of each argument, in any order."""
    kinds = {name: kind for name, kind, _ in tool.parameters}
    said_order = list(arguments)
    if len(said_order) > 1 and source.chance(0.8 if source.odd_order else 0.3):
        source.random.shuffle(said_order)
    strings = [name for name in arguments if kinds[name] == "string"]
    said = ""
    for position, name in enumerate(said_order):
        value = spoken(source, kinds[name], arguments[name])
        plain = name.replace("_", " ") if source.chance(0.5) else name
        if kinds[name] == "string" and len(strings) == 1 and position == 0 and source.chance(0.6):
            phrase = value_phrase(source, ONLY_VALUE, USUAL_VALUE, "{v}")
        elif len(said_order) == 1 and source.chance(0.4):
            phrase = value_phrase(source, ONLY_VALUE, USUAL_VALUE, "{v}")
        elif kinds[name] == "integer" and source.chance(0.4):
            phrase = value_phrase(source, COUNTED, USUAL_COUNTED, "{v}", "{p}")
        else:
            phrase = value_phrase(source, KEYED, USUAL_KEYED, "{p}", "{v}")
        said += phrase.format(v=value, p=plain)
    return said


def plain_request(source, verb, thing):
    """What a user says for this to be done to the thing, without values."""
    return " ".join(filter(None, (opening(source), verb, source.any(ARTICLES), thing)))


def question(source):
    """How a user asks for a thing alone."""
    if source.held_out or not source.odd_order or source.chance(0.5):
        return source.pick(QUESTIONS)
    while True:
        made = " ".join(source.any(GLUE) for _ in range(source.number(0, 4))) + " {thing}"
        if not is_held_out(made):
            return made.lstrip()


def request_for(source, tool, verb, thing):
    """What a user says for the tool to do this to the thing."""
    arguments = {name: value_of(source, kind) for name, kind, required in tool.parameters
                 if required or source.chance(0.6)}
    if verb in FINDING and source.chance(0.4):
        text = question(source).format(thing=thing)
    else:
        text = plain_request(source, verb, thing)
    values = phrases(source, tool, arguments)
    if values and not source.held_out and source.chance(0.1):
        text = f"{values.lstrip(' ,.;:-')}, {text}"
    else:
        text += values
    if source.chance(0.5):
        text = text[:1].upper() + text[1:]
    if source.chance(0.4):
        text += source.pick(CLOSINGS, USUAL_CLOSINGS)
    return Request(text, tool, arguments, verb, thing)


def tool_and_request(source, verb=None, thing=None):
    """A tool, and a request that it fits. verb, thing: what it does, else anything."""
    verb = verb or word(source, VERBS)
    thing = thing or subject(source)
    return request_for(source, tool_for(source, verb, thing), verb, thing)


def bare_tool_and_request(source, verb=None, thing=None):
    """A tool without parameters, and a request for just that."""
    verb = verb or word(source, VERBS)
    thing = thing or subject(source)
    tool = tool_for(source, verb, thing)
    tool.parameters = []
    text = plain_request(source, verb, thing)
    return Request(text, tool, {}, verb, thing)


def asked_again(source, request):
    """Another request for the same tool."""
    if not request.verb:
        return familiar_request(source, request.tool)
    return request_for(source, request.tool, request.verb, request.thing)


# The tools of Sluice's own demo, and others that people try first.
FAMILIAR = (
    (Tool("echo", "Returns the text it is given", [("text", "string", True)]),
     ("echo {v}", "please echo {v}", "use echo with {v}", "call echo with the text {v}",
      "send back {v} with echo", "echo the text {v}", "can you echo {v}?")),
    (Tool("stream_numbers", "Streams numbers one after the other",
          [("count", "integer", True), ("interval_ms", "integer", False)]),
     ("stream {v} numbers", "stream up to {v} numbers", "stream {v} numbers please",
      "please stream up to {v} numbers", "can you stream {v} numbers?",
      "stream numbers, {v} of them")),
    (Tool("add", "Adds two numbers", [("a", "integer", True), ("b", "integer", True)]),
     ("add {v} and {w}", "what is {v} + {w}?", "{v} plus {w}", "use add for {v} and {w}",
      "how much is {v} plus {w}?", "add {v} to {w}", "add {v} and {w} with the tool")),
    (Tool("get_time", "Gets the current time", []),
     ("what time is it?", "get the time", "tell me the current time", "the time please")),
    (Tool("get_weather", "Gets the weather for a city", [("city", "string", True)]),
     ("what is the weather in {n}?", "weather in {n}", "how is the weather in {n}?",
      "get the weather for {n}", "what's the weather like in {n} today?")),
)


def familiar_request(source, tool=None):
    """A request for one of the familiar tools, or for this one."""
    tool, asks = source.any([each for each in FAMILIAR if tool in (None, each[0])])
    first, second = source.number(0, 500), source.number(0, 500)
    if tool.name == "echo":
        first = " ".join(word(source, NOUNS) for _ in range(source.number(1, 4)))
    place = source.name()
    text = source.any(asks).format(v=first, w=second, n=place)
    arguments = {"echo": {"text": first}, "stream_numbers": {"count": first},
                 "add": {"a": first, "b": second}, "get_time": {}, "get_weather": {"city": place}}
    if tool.name == "stream_numbers" and source.chance(0.25):
        text += source.any((" every {} ms", " with an interval of {} ms", ", interval_ms {}",
                            ", one each {} milliseconds")).format(second)
        return Request(text, tool, {"count": first, "interval_ms": second})
    return Request(text, tool, arguments[tool.name])


def competing(source, request, others=None):
    """The request among up to three for other tools, in any order. Some of their tools do the same
    to other things, in the training also other things to the same."""
    requests = [request]
    others = source.any((0, 0, 1, 1, 2, 3, 3)) if others is None else others
    alike = 0.15 if source.held_out else 0.3
    while len(requests) < 1 + others:
        verb = request.verb if source.chance(alike) else None
        thing = request.thing if not source.held_out and not verb and source.chance(alike) else None
        other = tool_and_request(source, verb, thing)
        if other.tool.name not in [known.tool.name for known in requests]:
            requests.append(other)
    source.random.shuffle(requests)
    return requests


def offered(source, request, others=None):
    """The request's tool among up to three others, in any order."""
    return [each.tool for each in competing(source, request, others)]
