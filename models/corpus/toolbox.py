"""Tools nobody has seen before, and ways of asking for them."""

from dataclasses import dataclass

from .dialogue import Tool
from .drills import identifier
from .words import ADJECTIVES, INTEGER_PARAMETERS, NOUNS, STRING_PARAMETERS, VERBS

DESCRIPTIONS = ("{Verbs} the {thing}", "{Verb} the {thing}", "{Verbs} a {thing}",
                "Use this to {verb} the {thing}", "{Verb} one {thing}", "{Verbs} any {thing}",
                "Lets you {verb} the {thing}", "{Verb} a {thing} for the user", "{Verbs} {thing}")
ASKS = ("{verb} the {thing}", "please {verb} the {thing}", "can you {verb} the {thing}",
        "I want to {verb} the {thing}", "could you {verb} a {thing}", "{verb} a {thing}",
        "{verb} my {thing}", "I need you to {verb} the {thing}", "go and {verb} the {thing}",
        "would you {verb} the {thing}", "help me {verb} a {thing}", "{verb} {thing}",
        "I would like to {verb} the {thing}", "{verb} one {thing}", "now {verb} the {thing}",
        "use a tool to {verb} the {thing}", "you should {verb} the {thing}",
        "I have to {verb} a {thing}")
ONLY_VALUE = (" for {v}", " of {v}", " about {v}", " called {v}", " in {v}", " named {v}", ": {v}",
              " {v}", " with {v}", " from {v}", " at {v}", " on {v}", " to {v}")
KEYED = (" with {p} {v}", ", {p} {v}", " and {p} {v}", " with the {p} {v}", ", {p} = {v}",
         ", {p}: {v}", " using {v} as {p}", " where {p} is {v}", " with {v} as the {p}",
         ", the {p} is {v}", " and the {p} is {v}", " with {p} set to {v}", " ({p} {v})",
         ", {p} should be {v}")
COUNTED = (" {v} {p}", " for {v} {p}", ", {v} {p}", " with {v} {p}")


@dataclass
class Request:
    """What a user asks, the tool that fits, and the arguments it needs."""

    text: str
    tool: Tool
    arguments: dict


def word(source, words):
    return source.invented() if source.chance(0.25) else source.pick(words)


def tool_name(source, verb, thing):
    words = [verb, *thing.split()]
    if source.chance(0.2):
        words = words[1:] + words[:1]
    if source.chance(0.1):
        words = words[1:] if len(words) > 2 else words
    style = source.number(0, 9)
    if style < 6:
        return "_".join(words)
    if style < 8:
        return words[0] + "".join(part.capitalize() for part in words[1:])
    return "-".join(words)


def parameters(source):
    count = source.any((0, 1, 1, 1, 1, 2, 2, 2, 3))
    found = []
    for index in range(count):
        kind = source.any(("string", "string", "string", "integer", "integer", "number", "boolean"))
        if kind == "boolean" and not found:
            kind = "integer"
        names = INTEGER_PARAMETERS if kind in ("integer", "number") else STRING_PARAMETERS
        name = word(source, names)
        if name not in [other for other, _, _ in found]:
            found.append((name, kind, index == 0 or source.chance(0.7)))
    return sorted(found, key=lambda parameter: not parameter[2])


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


def tool_and_request(source):
    """A tool, and a request that it fits."""
    verb = word(source, VERBS)
    thing = word(source, NOUNS)
    if source.chance(0.4):
        thing = f"{word(source, ADJECTIVES + NOUNS)} {thing}"
    tool = Tool(tool_name(source, verb, thing),
                source.pick(DESCRIPTIONS).format(verb=verb, Verb=verb.capitalize(),
                                                 Verbs=verb.capitalize() + "s", thing=thing)
                + source.any(("", ".")),
                parameters(source))
    arguments = {name: value_of(source, kind) for name, kind, required in tool.parameters
                 if required or source.chance(0.6)}
    text = source.pick(ASKS).format(verb=verb, thing=thing)
    kinds = {name: kind for name, kind, _ in tool.parameters}
    said_order = list(arguments)
    if len(said_order) > 1 and source.chance(0.3):
        source.random.shuffle(said_order)
    strings = [name for name in arguments if kinds[name] == "string"]
    for position, name in enumerate(said_order):
        value = spoken(source, kinds[name], arguments[name])
        plain = name.replace("_", " ") if source.chance(0.5) else name
        if kinds[name] == "string" and len(strings) == 1 and position == 0 and source.chance(0.6):
            text += source.pick(ONLY_VALUE).format(v=value)
        elif len(said_order) == 1 and source.chance(0.4):
            text += source.pick(ONLY_VALUE).format(v=value)
        elif kinds[name] == "integer" and source.chance(0.4):
            text += source.pick(COUNTED).format(v=value, p=plain)
        else:
            text += source.pick(KEYED).format(v=value, p=plain)
    if source.chance(0.5):
        text = text[:1].upper() + text[1:]
    if source.chance(0.4):
        text += source.any((".", "?", "!", " please"))
    return Request(text, tool, arguments)


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


def familiar_request(source):
    tool, asks = source.any(FAMILIAR)
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


def offered(source, request, others=None):
    """The request's tool among up to three others, in any order."""
    tools = [request.tool]
    while len(tools) < 1 + (others if others is not None else source.any((0, 0, 1, 1, 2, 3, 3))):
        other = tool_and_request(source).tool
        if other.name not in [tool.name for tool in tools]:
            tools.append(other)
    source.random.shuffle(tools)
    return tools
