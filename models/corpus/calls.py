"""Calling the tool that fits, none where none fits, and answering from its result."""

from . import basics, natural, outside, stories
from .catalogue import SIDES
from .dialogue import Dialogue, Message, called, said
from .results import result
from .toolbox import (FAMILIAR, FINDING, asked_again, bare_tool_and_request, competing, familiar_request,
                      offered, tool_and_request)

NO_TOOL = "None of my tools can do that."


def request_of(source):
    if not source.held_out and source.chance(0.12):
        return familiar_request(source)
    return tool_and_request(source)


def with_result(source, messages):
    text, answer = result(source)
    messages += [Message("tool", text), said(answer)]


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


def natural_calling(source):
    """Calls of realistic tools, and often more of them, with or without answers from their results."""
    request = natural.natural_request(source)
    requests = natural.others_for(source, request, source.any((0, 0, 1, 1, 2, 2, 3, 3, 4, 6)))
    messages = []
    while True:
        messages += [Message("user", request.text), called(request.tool.name, request.arguments)]
        if source.chance(0.3):
            with_result(source, messages)
        if len(messages) > 7 or source.chance(0.45):
            return Dialogue("tools", messages, [each.tool for each in requests])
        if source.chance(0.1):
            messages += [Message("user", strange_request(source, requests).text), said(NO_TOOL)]
        request = natural.asked_again(source, source.any(requests))


def strange_request(source, requests):
    """A request that none of the tools of these fits: of none of their domains."""
    domains = {each.entry.domain for each in requests}
    while True:
        entry = source.any(SIDES[source.held_out])
        if entry.domain not in domains:
            return natural.natural_request(source, entry)


def natural_no_call(source):
    """Realistic tools are on offer, but none of them does what is asked."""
    kind = source.number(0, 9)
    first = natural.natural_request(source) if kind != 9 else \
        natural.natural_request(source, natural.invented_entry(source))
    requests = natural.others_for(source, first, source.any((0, 1, 2, 3)) if kind != 9 else 0)
    if kind in (6, 7):
        requests = [each for each in requests if each.entry.domain != "numbers"] or [
            natural.natural_request(source, natural.invented_entry(source))]
    tools = [each.tool for each in requests]
    if kind < 6:
        text = strange_request(source, requests).text
        return Dialogue("no tool", [Message("user", text), Message("assistant", NO_TOOL, without_call)],
                        tools)
    if kind == 8:
        question, told = stories.dialogue(source).messages
        return Dialogue("no tool", [question, Message("assistant", told.content, without_call)], tools)
    if kind < 8:
        return Dialogue("no tool", basics.exchange(source), tools)
    question, answer = outside.exchange(source)
    return Dialogue("no tool", [question, Message("assistant", answer.content, without_call)], tools)


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
    if source.chance(0.6):
        return natural_no_call(source)
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
    if source.chance(0.8):
        request = natural.natural_request(source)
        requests = natural.others_for(source, request, source.number(0, 3))
        return Dialogue("tools", [Message("user", request.text),
                                  called(request.tool.name, request.arguments)],
                        [each.tool for each in requests])
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
