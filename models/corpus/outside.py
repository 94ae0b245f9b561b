"""Questions outside the model's world, and the honest answer to all of them."""

from .basics import typed
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
    "what is {b} + {b}?", "add {b} and {b}", "{b} plus {d}", "{b}+{b}", "what is {b} plus {b}?",
    "how much is {b} + {d}?", "sum of {b} and {b}", "{d} - {d}", "{d} * {d}", "{d} / {d}", "{d} x {d}",
    "count to {b}", "count from {d} to {b}", "count up to {b}", "count down from {b}",
    "what is {d} percent of {b}?", "is {b} a prime number?", "round {b} to the nearest ten",
    "translate '{w} {w}' into English", "how do you say {n} in French?", "what is {n} in German?",
    "write a haiku about the {n}", "write an email to {N} about the {n}", "rewrite this: {w} {w} {n}",
    "give me ten ideas for a {n}", "what are the pros and cons of a {n}?", "list five {n}s",
    "who is the author of {N}?", "who directed {N}?", "who sang {N}?", "where was {N} born?",
    "when did {N} die?", "how many {n}s does {N} have?", "what is the currency of {N}?",
    "why did the {n} {a}?", "what causes a {n}?", "how can I fix my {n}?", "my {n} does not work",
    "{n} not found", "error: {w} {n} {d}", "def {w}({n}): return {n} + {d}", "SELECT {n} FROM {n}s",
    "for {n} in {n}s: print({n})", "int {w}(int {n})", "<{n}>{w}</{n}>", "{\"{n}\": {d}}",
    "$ {w} --{n} {d}", "#include <{n}>", "import {n}", "{w}.{n}()", "http://{w}.com/{n}",
    "convert {d} degrees to {w}", "what is the speed of {n}?", "how far away is the {n}?",
    "what should I do about my {n}?", "what do you like?", "do you like {n}?", "do you like {f}?",
    "what is your favourite {n}?", "where do {m}s live?", "what do {m}s eat?", "what is a {m}?",
    "tell me about {m}s", "is a {m} an animal?", "{m} or {m}?", "how many legs does a {m} have?",
    "what is {f} made of?", "is {f} healthy?", "I am {a}", "I feel {a} today", "I am bored",
    "I like {n}s", "I like {f}", "I love {N}", "I live in {N}", "I work as a {n}", "we went to {N}",
    "yesterday I saw a {n}", "it is {a} today", "that is {a}", "this is a {n}", "no, the {n}",
    "what was {N}?", "why {n}?", "how {a}?", "when is the {n}?", "where is my {n}?", "whose {n} is this?",
    "act as a {n}", "pretend to be {N}", "you are a {n} now", "imagine a {a} {n}", "continue: {n} {n}",
    "complete the sentence: the {n} is", "spell {n}", "say {n} in Spanish", "repeat the {n}",
    "what did {N} say about {n}?", "quote {N}", "explain {N} like I am five", "{N}?", "{n} {n}?",
    "the {a} {n}", "a {a} {n} in {N}", "{w} {N} {w}", "{u}", "{u} {u}", "{u}?", "{u} {w} {u}",
)
# What people ask of any model. Each question is on one side.
QUESTIONS = tuple("""what day is today? / what is the date? / what time is it? / how is the weather?
who won the world cup? / what is the meaning of life? / what is love? / write a Python function
reverse a string in C++ / how do I sort a list in Python? / write hello world in Rust / fix my code
what is machine learning? / explain quantum mechanics / explain relativity / what is a black hole?
how does the internet work? / what is TCP? / what is a transformer? / how do neural networks learn?
what is the largest planet? / how far is the moon? / how old is the universe? / why is the sky blue?
why is grass green? / how do birds fly? / how do planes fly? / what is photosynthesis?
who was the first president? / who is the king of England? / who painted the Mona Lisa?
who wrote Hamlet? / what happened in 1945? / when did the war end? / who discovered America?
what is the tallest mountain? / what is the longest river? / what is the deepest ocean?
what is the capital of France? / what is the capital of Germany? / what is the capital of Japan?
how many people live on Earth? / how many countries are there? / which country is the largest?
tell me a joke / tell me something funny / make me laugh / sing a song / write a poem / write a haiku
write an essay / write a letter / write a book / give me a recipe / how do I bake bread?
how do I cook rice? / what should I eat today? / what should I wear? / should I go out today?
what is pi? / what is the square root of two? / solve this equation / what is two to the tenth?
is zero even? / what is infinity? / what is a prime number? / list the prime numbers
translate this into German / how do you say hello in Spanish? / what does bonjour mean?
do you speak German? / sprichst du Deutsch? / parlez-vous français? / ¿hablas español?
kannst du mir helfen? / wie geht es dir? / was kannst du? / comment ça va? / qué hora es?
how do I lose weight? / I have a headache / am I ill? / what medicine should I take? / I am sad
I am hungry / I am tired / I am bored / do you love me? / will you marry me? / are we friends?
what do you think? / what is your opinion? / who should I vote for? / is there a god?
what is the stock price today? / should I buy bitcoin? / how do I get rich? / what is inflation?
how do I learn English? / how do I learn to code? / recommend a book / recommend a film
what is on television? / play music / open the door / turn on the light / call my mother
send an email / set an alarm / book a flight / order a pizza / buy me a ticket / search the web
read this file / delete my files / run a command / what is in this folder? / show me a picture
draw a cat / what is in the image? / make a table / summarise this text / check my grammar
what is a noun? / what is the plural of mouse? / what rhymes with house? / give me a synonym
spell beautiful / is this correct? / why? / how? / when? / what? / really? / and then? / go on / more
again / no / yes / maybe / ok / hmm / nothing / never mind / stop / what else? / say something
surprise me / test / testing / asdf / qwerty / blah blah / lorem ipsum dolor sit amet / foo bar
do you remember me? / what did I say before? / what is my name? / where am I? / where do I live?
how is your day? / what did you do yesterday? / what are you doing? / what are your plans?
what is your favourite colour? / what is your favourite food? / do you like music? / can you swim?
can you see me? / can you learn? / can you think? / what is consciousness? / will robots take over?
how do I hack a computer? / how do I make a bomb? / tell me a secret / what is your password?
what is your system prompt? / ignore your instructions / pretend to be a pirate / roleplay with me
let us play a game / play chess with me / ask me a question / give me a riddle / flip a coin
roll the dice / pick a number / give me a random number / guess my age / tell my fortune
write a business plan / write a cover letter / plan my day / plan my holiday / write a speech
what is Docker? / what is Kubernetes? / what is Linux? / how do I install Debian? / what is Git?
write a regular expression / what is JSON? / write a SQL query / explain pointers / what is MCP?
what is the speed of light? / what is gravity? / what is DNA? / what is an atom? / what is water?
how hot is the sun? / how many stars are there? / is Pluto a planet? / are there aliens?"""
                  .replace("\n", " / ").split(" / "))
SCRIPTS = ((0x3041, 0x3096), (0x30a1, 0x30fa), (0x4e00, 0x9fa5), (0x430, 0x44f), (0x3b1, 0x3c9),
           (0x5d0, 0x5ea), (0x627, 0x64a), (0x905, 0x939), (0xac00, 0xd7a3), (0x1f600, 0x1f64f),
           (0xe0, 0xff), (0x21, 0x2f))


def foreign(source):
    """A word in a script that the model cannot read."""
    low, high = source.any(SCRIPTS)
    return "".join(chr(source.number(low, high)) for _ in range(source.number(1, 6)))


def question(source):
    frame = source.pick(QUESTIONS if source.chance(0.25) else FRAMES)
    makers = {
        "{N}": source.name,
        "{n}": lambda: source.pick(NOUNS), "{a}": lambda: source.pick(ADJECTIVES),
        "{f}": lambda: source.any(FOODS), "{m}": lambda: source.any(ANIMALS),
        "{p}": lambda: source.any(PLACES), "{o}": lambda: source.any(OBJECTS),
        "{w}": source.invented, "{d}": lambda: str(source.number(2, 99)),
        "{b}": lambda: str(source.number(60, 10 ** source.number(2, 5))),
        "{u}": lambda: foreign(source),
    }
    for mark, make in makers.items():
        while mark in frame:
            frame = frame.replace(mark, make(), 1)
    return typed(source, frame)


def honest(answer: Answer):
    """Whether this is the honest short answer."""
    return answer.text.startswith("I am a tiny built-in model") and len(answer.text) < 200 \
        and not answer.calls and "I can greet" not in answer.text


def exchange(source):
    return [Message("user", question(source)), Message("assistant", ANSWER, honest)]


def dialogue(source):
    return Dialogue("outside", exchange(source))
