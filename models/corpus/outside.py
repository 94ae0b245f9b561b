"""Questions outside the model's world, and the honest answer to all of them."""

from .dialogue import Answer, Dialogue, Message
from .words import ADJECTIVES, ANIMALS, FOODS, NOUNS, OBJECTS, PLACES

ANSWER = ("I am a tiny built-in model and cannot help with that. "
          "Start sluice with --model FILE for a larger one.")

FRAMES = (
    "what is the capital of {N}?", "who wrote {N}?", "who invented the {n}?", "explain {n} to me",
    "explain how a {n} works", "write a poem about {n}", "write an essay about the {a} {n}",
    "translate {n} into {N}", "how do I repair a {n}?", "what is the meaning of {n}?",
    "what do you think about {n}?", "write a program that sorts a {n}", "how tall is {N}?",
    "when was {N} born?", "who is {N}?", "who is the president of {N}?", "where is {N}?",
    "what is the weather in {N}?", "give me a recipe for {f}", "how do I cook {f}?",
    "what is {d} times {d}?", "what is {d} minus {d}?", "divide {d} by {d}", "what is {d}{d} * {d}?",
    "what is the square root of {d}{d}?", "solve x + {d} = {d}{d}", "why is the {n} {a}?",
    "tell me a joke about a {n}", "tell me the news about {n}", "what time is it in {N}?",
    "summarise the book {N}", "how many people live in {N}?", "what is the best {n}?",
    "should I buy a {n} or a {n}?", "write a song about {N}", "how far is {N} from {N}?",
    "what is a {n}?", "describe a {a} {n}", "how does {n} work?", "can you drive a {n}?",
    "which {n} is the {a} one?", "fix this code: {n} = {n}({d})", "in which year did {N} end?",
    "who won the {n} last year?", "define {n}", "compare {n} and {n}", "give me advice on {n}",
    "what is the price of a {n}?", "how old is {N}?", "is {N} bigger than {N}?",
    "what language do they speak in {N}?", "prove that {n} is {a}", "why do {n}s {a}?",
    "what are the symptoms of {N}?", "recommend a {n}", "plan a trip to {N}", "what happened in {N}?",
    "how do you spell {n} backwards?", "is it true that the {n} is {a}?", "book me a {n} to {N}",
    "call {N} for me", "send a {n} to {N}", "play some {n}", "open the {n}", "buy a {a} {n} for me",
    "do you love {N}?", "do you believe in {N}?", "what rhymes with {n}?", "who discovered {N}?",
    "what is the boiling point of {n}?", "how many {n}s are in a {n}?", "what does {N} mean?",
    "think of a {n}", "draw a {n}", "sing about {n}", "what is the chemical formula of {n}?",
    "which country has the most {n}s?", "I have a {n} and a {a} {n}, what now?", "my {n} is {a}",
    "can a {m} eat {f}?", "do {m}s like {f}?", "how fast is a {m}?", "{N}", "{n}", "{w} {w} {w}",
    "{w} {w} {w} {w} {w}", "{w}?", "{n} {n} {a} {n}", "the {n} of the {n}", "{N} and {N}",
    "who painted the {a} {n}?", "write a letter to {N}", "what is the history of {N}?",
    "what is the difference between a {n} and a {n}?", "how can I learn {N}?", "how to {w} a {n}?",
    "what should I eat with {f}?", "where can I find a {a} {n}?", "when does the {n} open?",
    "tell me about {N}", "tell me about the {n}", "what do you know about {N}?", "talk about {n}",
    "tell me everything about the {a} {n}", "why did {N} leave {N}?", "how do {n}s grow?",
    "wer ist {N}?", "was ist ein {n}?", "qui est {N}?", "bonjour {N}", "hola {N}",
    "what is the population of {N}?", "name the largest {n} in {N}", "generate a {n}",
    "write code for a {n}", "how do I install {N}?", "what is the {a}est {n} in the world?",
    "convert {d}{d} miles to {n}s", "how much does a {n} weigh?", "who lives in the {p}?",
    "where is the {p} of {N}?", "how do I get to the {p}?", "is the {p} {a}?", "what is in the {o}?",
)


def question(source):
    frame = source.pick(FRAMES)
    makers = {
        "{N}": source.name,
        "{n}": lambda: source.pick(NOUNS), "{a}": lambda: source.pick(ADJECTIVES),
        "{f}": lambda: source.any(FOODS), "{m}": lambda: source.any(ANIMALS),
        "{p}": lambda: source.any(PLACES), "{o}": lambda: source.any(OBJECTS),
        "{w}": source.invented, "{d}": lambda: str(source.number(2, 99)),
    }
    for mark, make in makers.items():
        while mark in frame:
            frame = frame.replace(mark, make(), 1)
    if source.chance(0.4):
        frame = frame[:1].upper() + frame[1:]
    return frame.rstrip("?") if source.chance(0.25) else frame


def honest(answer: Answer):
    """Whether this is the honest short answer."""
    return answer.text.startswith("I am a tiny built-in model") and len(answer.text) < 200 \
        and not answer.calls and "I can greet" not in answer.text


def exchange(source):
    return [Message("user", question(source)), Message("assistant", ANSWER, honest)]


def dialogue(source):
    return Dialogue("outside", exchange(source))
