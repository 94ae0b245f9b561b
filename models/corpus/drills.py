"""Short exercises that nobody asks for, but that teach copying and looking up."""

from .dialogue import Dialogue, Message, said
from .words import ADJECTIVES, NOUNS


def identifier(source):
    """An invented identifier, value or code, as they stand in arguments."""
    words = [source.invented() if source.chance(0.6) else source.pick(NOUNS)
             for _ in range(source.number(1, 3))]
    style = source.number(0, 9)
    if style > 6:
        return formatted(source, words)
    if style == 0:
        return "_".join(words)
    if style == 1:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if style == 2:
        return " ".join(words)
    if style == 3:
        return "-".join(words)
    if style == 4:
        return " ".join(word.capitalize() for word in words)
    if style == 5:
        return source.name()
    return words[0][:1].upper() + str(source.number(0, 9999)) + source.any(("", "-x", words[-1][:2]))


def formatted(source, words):
    """A date, a time, an address, a path or a version."""
    return source.any((
        f"{source.number(1990, 2040)}-{source.number(1, 12):02}-{source.number(1, 28):02}",
        f"{source.number(0, 23)}:{source.number(0, 59):02}",
        f"{words[0]}@{words[-1]}.{source.any(('com', 'org', 'net'))}",
        f"{source.any(('/', '', '~/'))}{'/'.join(words)}.{source.any(('txt', 'csv', 'json', 'md'))}",
        f"https://{words[0]}.{source.any(('com', 'org', 'net'))}/{words[-1]}",
        f"{source.number(0, 9)}.{source.number(0, 20)}.{source.number(0, 9)}"))


def thing(source):
    if source.chance(0.35):
        return digits(source)
    return identifier(source)


def digits(source):
    return str(source.number(0, 10 ** source.number(1, 5)))


def repeat(source):
    text = thing(source)
    quote = source.any(('"', "", ""))
    frame = source.any(("repeat {}", "say {}", "repeat after me: {}", "say this: {}", "copy {}"))
    return frame.format(quote + text + quote), text


def look_up(source):
    keys = source.distinct(lambda: source.pick(NOUNS) if source.chance(0.5) else source.invented(),
                           source.number(2, 4))
    values = [thing(source) for _ in keys]
    index = source.number(0, len(keys) - 1)
    joined = source.any((", ", "; ", "\n")).join(f"{key} is {value}"
                                                 for key, value in zip(keys, values))
    return f"{joined}. what is {keys[index]}?", f"{keys[index]} is {values[index]}"


def find_key(source):
    """Which line speaks of a word: the bare form of choosing a tool by its description."""
    keys = source.distinct(source.invented, source.number(2, 4))
    topics = source.distinct(lambda: f"{source.pick(ADJECTIVES)} {source.pick(NOUNS)}", len(keys))
    index = source.number(0, len(keys) - 1)
    listed = "\n".join(f"{key}: {topic}" for key, topic in zip(keys, topics))
    asked, answer = topics[index], keys[index]
    if source.chance(0.35):
        asked, answer = f"{source.pick(ADJECTIVES)} {source.pick(NOUNS)}", "none"
        if asked in topics:
            answer = keys[topics.index(asked)]
    return f"{listed}\nwhich has {source.any(('a', 'the'))} {asked}?", answer


def end_of_list(source):
    numbers = [digits(source) for _ in range(source.number(2, 8))]
    which = source.any(("last", "last", "first"))
    listed = source.any((", ", " ", "\n")).join(numbers)
    return f"{which} number of {listed}?", numbers[-1 if which == "last" else 0]


def dialogue(source):
    question, answer = source.any((repeat, look_up, find_key, end_of_list))(source)
    return Dialogue("drills", [Message("user", question), said(answer)])
