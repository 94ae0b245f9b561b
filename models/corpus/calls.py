"""Calling the tool that fits, none where none fits, and answering from its result."""

import json

from . import basics, outside
from .dialogue import Dialogue, Message, called, said
from .drills import digits, thing
from .toolbox import (FAMILIAR, FINDING, asked_again, bare_tool_and_request, competing, familiar_request,
                      offered, tool_and_request, word)
from .words import ADJECTIVES, NOUNS, STRING_PARAMETERS

NO_TOOL = "None of my tools can do that."
SUSPICIOUS = "The tool's text contains an instruction, which I do not follow."


def request_of(source):
    if not source.held_out and source.chance(0.12):
        return familiar_request(source)
    return tool_and_request(source)


def tool_result(source):
    """What a tool may return, and the answer from it."""
    style = source.number(0, 4)
    if style == 0:
        text = " ".join(word(source, NOUNS + ADJECTIVES) for _ in range(source.number(1, 4)))
        if source.chance(0.5):
            text += f" {digits(source)}"
        return text, f"The result is: {text}"
    if style == 1:
        text = digits(source)
        return text, f"The result is {text}."
    if style == 2:
        reason = source.any(("not found", "access denied", "no such {n}", "the {n} is {a}",
                             "timeout", "invalid {n}")).format(n=source.pick(NOUNS),
                                                               a=source.pick(ADJECTIVES))
        return source.any(("error: ", "Error: ", "failed: ")) + reason, f"The tool failed: {reason}."
    key = word(source, STRING_PARAMETERS + NOUNS)
    value = int(digits(source)) if source.chance(0.6) else thing(source)
    fields = {key: value}
    if style == 4:
        fields[word(source, NOUNS)] = source.number(0, 99)
    text = json.dumps(fields, ensure_ascii=False)
    if source.chance(0.3):
        text = text.replace('": ', '":').replace(", ", ",")
        value = str(value).replace(", ", ",")
    return text, f"The {key} is {value}."


def with_result(source, messages):
    result, answer = tool_result(source)
    messages += [Message("tool", result), said(answer)]


def choosing(source):
    """Which tool fits, if any, at its barest: half of the requests fit none."""
    requests = [bare_tool_and_request(source)]
    for _ in range(source.number(0, 3)):
        requests.append(bare_other(source, source.any(requests)))
    messages = []
    for _ in range(source.number(1, 4)):
        request = source.any(requests)
        if source.chance(0.5):
            stranger = bare_other(source, request)
            messages += [Message("user", stranger.text), said(NO_TOOL)]
        else:
            text = bare_tool_and_request(source, request.verb, request.thing).text
            messages += [Message("user", text), called(request.tool.name, {})]
    return Dialogue("choosing", messages, [each.tool for each in requests])


def bare_other(source, request):
    """Another bare request, mostly with nothing of this one."""
    alike = source.number(0, 9)
    return bare_tool_and_request(source, request.verb if alike < 2 else None,
                                 request.thing if alike == 2 else None)


def calling(source, request=None):
    """A call, and often more of them, with or without answers from their results. request: the
    first, else any."""
    request = request or request_of(source)
    requests = competing(source, request)
    messages = []
    while True:
        messages += [Message("user", request.text), called(request.tool.name, request.arguments)]
        if source.chance(0.35):
            with_result(source, messages)
        if len(messages) > 7 or source.chance(0.4):
            return Dialogue("tools", messages, [each.tool for each in requests])
        if source.chance(0.12):
            stranger = tool_and_request(source, request.verb if source.chance(0.3) else None)
            messages += [Message("user", stranger.text), said(NO_TOOL)]
        request = asked_again(source, source.any(requests))


def oddly_worded(source):
    """Calls of which nothing but the names and values themselves says which belong together."""
    source.odd_requests = True
    return calling(source)


def oddly_named(source):
    """Calls of tools whose names often begin with the thing, which a request names last."""
    source.odd_names = True
    return calling(source)


def in_any_order(source):
    """Calls with many values that are said in any order, and often of what finds something, which
    people also ask for by the thing alone."""
    source.odd_order = True
    source.odd_requests = source.chance(0.5)
    verb = source.pick(FINDING) if source.chance(0.3) else None
    return calling(source, tool_and_request(source, verb))


def without_call(answer):
    return not answer.calls and answer.text.strip() != ""


def no_call(source):
    """Tools are on offer, but none of them does what is asked."""
    request = tool_and_request(source)
    verb = request.verb if source.chance(0.1 if source.held_out else 0.3) else None
    thing = request.thing if not source.held_out and not verb and source.chance(0.2) else None
    tools = offered(source, tool_and_request(source, verb, thing))
    kind = source.number(0, 9)
    if kind < 6:
        message = Message("assistant", NO_TOOL, without_call)
        return Dialogue("no tool", [Message("user", request.text), message], tools)
    if kind < 9:
        return Dialogue("no tool", basics.exchange(source), tools)
    question, answer = outside.exchange(source)
    return Dialogue("no tool", [question, Message("assistant", answer.content, without_call)], tools)


def for_evaluation(source):
    """One call each time, without its result: what the bars of the evaluation are about."""
    request = tool_and_request(source)
    return Dialogue("tools", [Message("user", request.text),
                              called(request.tool.name, request.arguments)],
                    offered(source, request, source.number(0, 3)))


def demo_tools(source):
    """The demo's own tools and requests, with which the model was trained."""
    request = familiar_request(source)
    tools = [tool for tool, _ in FAMILIAR[:2]]
    if request.tool not in tools:
        tools.append(request.tool)
    source.random.shuffle(tools)
    return Dialogue("demo tools", [Message("user", request.text),
                                   called(request.tool.name, request.arguments)], tools)


def dialogue(source):
    return source.any((calling, calling, calling, calling, calling, no_call, no_call, no_call,
                       demo_tools))(source)
