"""Small talk and small facts: greetings, identity, colours, days, counting, adding."""

from .dialogue import Dialogue, Message, said

ABOUT = "I can greet, count, add small numbers, tell small stories and call tools."
NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen sixteen seventeen eighteen nineteen twenty""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
THINGS = {
    "sky": "blue", "sea": "blue", "grass": "green", "leaf": "green", "frog": "green",
    "banana": "yellow", "lemon": "yellow", "sun": "yellow", "snow": "white", "milk": "white",
    "coal": "black", "night": "black", "tomato": "red", "blood": "red", "strawberry": "red",
    "carrot": "orange", "pumpkin": "orange", "elephant": "grey", "chocolate": "brown",
    "violet": "purple",
}
MIXES = {("blue", "yellow"): "green", ("red", "yellow"): "orange", ("red", "blue"): "purple",
         ("black", "white"): "grey", ("red", "white"): "pink"}

GREETINGS = {"Hello": ("hello", "hi", "hey", "hi there", "hello there", "howdy", "hey there",
                       "greetings", "hiya", "hello again", "hello hello", "yo", "hi again", "oh hi",
                       "well hello"),
             "Good morning": ("good morning", "morning", "a very good morning"),
             "Good evening": ("good evening", "evening", "a very good evening"),
             "Good afternoon": ("good afternoon", "a very good afternoon"),
             "Good day": ("good day", "a very good day", "g'day")}
ADDRESSES = ("", "", "", "", " sluice", " tiny model", " model", " friend", " my friend", " you",
             " everyone", " little one", " computer", " assistant", " bot", " old friend",
             " little model", " buddy", " there you")
GREETING_TAILS = ("", "", "", "how are you?", "nice to meet you", "how is it going?",
                  "how do you do?", "are you there?", "can you hear me?", "how are you today?",
                  "good to see you", "are you awake?", "what's up?", "how are things?",
                  "I am new here", "is anybody there?")
INTRODUCTIONS = ("I am {}", "I'm {}", "my name is {}", "this is {}", "{} here", "call me {}",
                 "the name is {}", "it is me, {}", "you can call me {}", "I am called {}",
                 "my friends call me {}", "people call me {}")

FIXED = {
    f"I am Sluice Tiny, the tiny built-in model of Sluice. {ABOUT}": (
        "who are you?", "what are you?", "what is your name?", "tell me who you are",
        "who am I talking to?", "introduce yourself", "what's your name?", "tell me about yourself",
        "do you have a name?", "what should I call you?", "what kind of model are you?",
        "which model are you?", "what model is this?", "who is this?", "who is speaking?",
        "what sort of program are you?", "what is this?", "are you a language model?",
        "say who you are", "what language model is this?", "describe yourself",
        "may I ask who you are?", "what exactly are you?", "who or what are you?", "your name?",
        "so who are you?", "tell me your name", "what model are you?", "are you an AI?",
        "who is there?", "which model is running?", "who am I speaking with?",
        "please introduce yourself", "could you introduce yourself?", "what do they call you?",
        "which language model are you?", "what model is running here?", "what is running here?",
        "who am I chatting with?", "hello, who are you?", "hi, what are you?", "and who are you?",
        "what is Sluice Tiny?", "who is Sluice Tiny?", "are you Sluice?", "are you Sluice Tiny?",
        "are you a model?", "are you a program?", "are you a bot?", "are you a computer?",
        "introduce yourself in one sentence", "introduce yourself briefly", "who are you, briefly?",
        "what are you, in one sentence?", "say in one sentence what you are",
        "what kind of thing are you?", "who's there?", "who is talking?", "say your name"),
    "No, I am a tiny built-in model, not a person.": (
        "are you human?", "are you a person?", "are you a real person?", "are you alive?",
        "am I talking to a human?", "are you a human being?", "do you have a body?",
        "is there a person behind you?", "do you have feelings?", "are you a man or a woman?",
        "are you conscious?", "do you sleep?", "do you eat?", "are you real?", "how old are you?",
        "do you have a family?", "are you somebody real?", "is this a human?", "are you a woman?",
        "are you a man?", "do you feel pain?", "is a human answering me?", "are you a living being?",
        "do you dream?", "are you a human or a machine?", "am I speaking with a person?",
        "do you feel anything?", "are you a real human?", "are you a living thing?", "do you live?",
        "are you a man?", "is there somebody real?", "do you have a heart?", "are you a boy or a girl?"),
    "No, I am only a tiny built-in model. For a large one, start sluice with --model FILE.": (
        "are you ChatGPT?", "are you Claude?", "are you GPT-4?", "are you Gemini?", "are you Llama?",
        "are you a large language model?", "are you a big model?", "are you smart?",
        "are you intelligent?", "do you know everything?", "are you Mistral?", "are you clever?",
        "can you answer everything?", "are you as good as ChatGPT?", "are you a large model?",
        "are you Siri?", "are you Alexa?", "are you better than GPT-4?", "do you know a lot?",
        "are you Qwen?", "can you do everything?", "are you very intelligent?",
        "is this ChatGPT?", "are you a powerful model?", "is this Claude?", "is this Llama?",
        "are you very smart?", "are you really intelligent?", "do you know all things?",
        "do you know many things?", "are you the best model?", "are you a Llama model?",
        "are you a GPT?", "are you DeepSeek?", "are you made by OpenAI?", "are you a huge model?"),
    ABOUT: (
        "what can you do?", "what are you good at?", "help", "how can you help me?",
        "what do you know?", "what are your abilities?", "what can I ask you?", "what do you do?",
        "what are you able to do?", "list your abilities", "how can I use you?", "can you help me?",
        "what are your skills?", "what is it that you can do?", "tell me what you can do",
        "what should I ask you?", "show me what you can do", "what may I ask?", "I need help",
        "give me some help", "what are you for?", "what can I do with you?", "help me", "please help me", "some help please",
        "how do I use you?", "what can you help me with?", "what things can you do?",
        "what else can you do?", "which things can you do?", "can you do anything?"),
    "The Sluice authors trained me from scratch on a plain processor.": (
        "who made you?", "who trained you?", "who built you?", "where do you come from?",
        "who created you?", "how were you made?", "how were you trained?", "who are your authors?",
        "who wrote you?", "who is your maker?", "where were you made?", "who developed you?",
        "how were you created?", "what company made you?", "tell me who made you",
        "who are your makers?", "who is behind you?", "who programmed you?", "how did they train you?",
        "who is your author?", "who is your creator?", "where were you trained?"),
    "I am tiny: I have fewer than two million parameters.": (
        "how big are you?", "how many parameters do you have?", "what size are you?",
        "are you small?", "how large are you?", "are you tiny?", "how small are you?",
        "what is your size?", "are you a small model?", "how many weights do you have?",
        "tell me your size", "how many parameters are in you?", "are you a tiny model?", "what is your parameter count?",
        "how big is this model?", "how large is this model?", "are you little?", "how tiny are you?"),
    "You are welcome.": (
        "thanks", "thank you", "thank you very much", "thanks a lot", "many thanks", "great, thanks",
        "thank you so much", "ok thanks", "cheers", "perfect, thank you", "nice, thanks",
        "thanks for your help", "well done, thank you", "good job", "well done", "thanks again",
        "thanks very much", "thank you a lot", "that helped, thanks", "great job", "thank you, model",
        "thanks, friend", "thank you for the help"),
    "Goodbye!": (
        "bye", "goodbye", "see you", "see you later", "bye bye", "good night", "farewell",
        "that is all, bye", "I have to go", "until tomorrow", "see you tomorrow", "ok bye",
        "have a nice day", "good bye", "so long", "take care", "goodbye, and take care", "bye, take care",
        "farewell, friend", "farewell, little model", "good bye, friend", "bye for now",
        "goodbye for now", "see you soon", "see you next time", "have a good day", "I am leaving, bye"),
    "There are seven days in a week.": (
        "how many days are in a week?", "how many days does a week have?",
        "how long is a week in days?", "how many days has a week?", "count the days of a week",
        "how many days make a week?", "a week has how many days?", "what is the number of days in a week?",
        "how many days are there in a week?", "tell me how many days a week has",
        "how long is a week?", "how many days long is a week?", "do you know how many days a week has?"),
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday.": (
        "list the days of the week", "name the days of the week", "what are the days of the week?",
        "which days are there?", "tell me the days of the week", "what days are there in a week?",
        "name all days", "list all days", "say the days of the week", "give me the days of the week",
        "name the seven days", "which days does a week have?", "list the seven days of the week",
        "which days are in a week?", "list the days", "name the days", "tell me all days",
        "tell me the seven days", "what are the seven days?", "days of the week?"),
    "Red, yellow and blue.": (
        "name three colours", "tell me three colours", "list some colours", "which colours do you know?",
        "name some colours", "give me three colours", "what colours are there?", "say three colours",
        "list three colours", "can you name a few colours?", "name a few colours",
        "tell me some colours", "what colours do you know?", "list a few colours", "list colours",
        "tell me a few colours", "name colours", "say some colours", "give me some colours"),
}
COLOUR_QUESTIONS = ("what colour is {}?", "which colour does {} have?", "tell me the colour of {}",
                    "what is the colour of {}?", "what colour does {} have?", "which colour is {}?",
                    "the colour of {}?", "do you know the colour of {}?", "say the colour of {}",
                    "what colour has {}?", "what would you say is the colour of {}?",
                    "name the colour of {}", "{} is what colour?", "{} has which colour?")
MIX_QUESTIONS = ("what do {} and {} make?", "what colour do you get from {} and {}?", "mix {} and {}",
                 "what is {} mixed with {}?", "what happens when I mix {} and {}?",
                 "which colour is {} plus {}?", "what do you get when you mix {} with {}?",
                 "if I mix {} and {}, what do I get?", "what colour do {} and {} give?",
                 "blend {} with {}", "{} and {} together make what colour?",
                 "what colour is a mix of {} and {}?", "which colour do {} and {} make?")
AFTER = ("which day comes after {}?", "what day is after {}?", "what is the day after {}?",
         "what comes after {}?", "which day follows {}?", "what day follows {}?",
         "today is {}, what is tomorrow?", "if today is {}, what day is tomorrow?", "the day after {}?",
         "tell me the day after {}", "name the day after {}", "it is {}, which day is tomorrow?",
         "after {} comes which day?")
BEFORE = ("which day comes before {}?", "what day is before {}?", "what is the day before {}?",
          "what comes before {}?", "which day is just before {}?",
          "today is {}, what was yesterday?", "if today is {}, what day was yesterday?",
          "the day before {}?", "tell me the day before {}", "name the day before {}",
          "it is {}, which day was yesterday?", "before {} comes which day?")
COUNT_UP = ("count from {} to {}", "count up from {} to {}", "please count {} to {}",
            "list the numbers from {} to {}", "say the numbers from {} to {}", "count {} to {}",
            "count from {} up to {}", "give me the numbers {} to {}", "numbers from {} to {}",
            "start at {} and count to {}", "write the numbers from {} to {}",
            "start counting at {} and stop at {}", "name the numbers from {} to {}",
            "begin at {} and count to {}", "show me the numbers from {} to {}", "count {} through {}")
COUNT_TO = ("count to {}", "count up to {}", "count from one to {}", "can you count to {}?",
            "list the numbers up to {}", "say the numbers up to {}", "please count up to {}",
            "let us count to {}", "count aloud to {}", "count until {}", "could you count to {}?",
            "count for me up to {}", "I want you to count to {}", "count all the way to {}")
COUNT_DOWN = ("count down from {} to {}", "count backwards from {} to {}", "count from {} down to {}",
              "count {} down to {}", "list the numbers from {} down to {}", "go down from {} to {}",
              "start at {} and count down to {}", "count back from {} to {}",
              "say the numbers from {} down to {}", "numbers from {} down to {}",
              "begin at {} and count down to {}", "write the numbers from {} down to {}",
              "count in reverse from {} to {}")
ADDITIONS = ("what is {} + {}?", "what is {} plus {}?", "{} + {}", "{}+{}", "{} plus {}", "add {} and {}",
             "how much is {} plus {}?", "what's {} + {}?", "calculate {} + {}", "sum of {} and {}",
             "add {} to {}", "what is the sum of {} and {}?", "how much is {} and {}?", "{} + {} = ?",
             "what is {}+{}?", "what does {} plus {} make?", "compute {} plus {}", "tell me {} + {}",
             "what do {} and {} add up to?", "{} + {} is what?", "can you add {} and {}?",
             "how much is {} + {}?", "what's {}+{}?", "{} and {} make?", "{}+{}=")
OPENERS = ("please ", "can you tell me: ", "hey, ", "ok, ", "now ", "so, ", "hi, ", "and ", "well, ",
           "tell me, ", "hello, ", "quick question: ", "one more: ", "then ", "please, ", "ok then, ", "right, ",
           "again, ", "next, ", "I wonder, ", "my question: ", "sorry, ", "excuse me, ", "thanks, ")


def typed(source, text):
    """The text as somebody may type it: with or without capital, full stop and courtesy."""
    if source.chance(0.2):
        text = source.pick(OPENERS) + text
    if source.chance(0.5):
        text = text[:1].upper() + text[1:]
    if source.chance(0.3):
        text = text.rstrip("?")
    elif not text.endswith("?") and source.chance(0.5):
        text += source.any((".", "!", ".", " please", ", please."))
    if source.chance(0.06):
        text = text.lower()
    return text


def greeting(source):
    word = source.any(list(GREETINGS))
    plain = source.any(GREETINGS[word])
    if source.chance(0.35):
        name = source.name()
        text = plain + source.any((", ", "! ", ". ", " ")) + source.pick(INTRODUCTIONS).format(name)
        return text, f"{word}, {name}! I am a tiny built-in model."
    answer = f"{word}! I am a tiny built-in model. {ABOUT}"
    # The bare greeting is for the training alone; the others have one side.
    if not source.held_out and source.chance(0.4):
        return plain, answer
    while True:
        text = plain + source.any(ADDRESSES)
        tail = source.any(GREETING_TAILS)
        if tail:
            text += source.any((", ", "! ", ". ", " ")) + tail
        if text != plain and source.owns(text):
            return text, answer


def fixed(source):
    answer = source.any(list(FIXED))
    return source.pick(FIXED[answer]), answer


def colour(source):
    if source.chance(0.3):
        pair = source.any(list(MIXES))
        mixed = MIXES[pair]
        pair = pair if source.chance(0.5) else pair[::-1]
        return source.pick(MIX_QUESTIONS).format(*pair), f"{pair[0].capitalize()} and {pair[1]} make {mixed}."
    thing = source.any(list(THINGS))
    article = source.any(("the ", "a ")) if thing not in ("snow", "milk", "coal", "blood", "grass") \
        else source.any(("", "the "))
    answer = f"The {thing} is {THINGS[thing]}."
    return source.pick(COLOUR_QUESTIONS).format(article + thing), answer


def day(source):
    index = source.number(0, 6)
    if source.chance(0.5):
        return source.pick(AFTER).format(DAYS[index]), f"After {DAYS[index]} comes {DAYS[(index + 1) % 7]}."
    return source.pick(BEFORE).format(DAYS[index]), f"Before {DAYS[index]} comes {DAYS[index - 1]}."


def counting(source):
    kind = source.any(("up", "down", "to"))
    while True:
        low = 1 if kind == "to" or source.chance(0.1) else source.number(1, 49)
        most = 50 if source.chance(0.4) else min(50, low + 12)
        high = source.number(low + 1, most)
        # There are few numbers to count to: all are taught, and judged in other words.
        if kind == "to" or source.owns("count", kind, low, high):
            break
    if kind == "down":
        numbers = range(high, low - 1, -1)
        text = (source.pick(COUNT_DOWN).format(high, low) if low != 1 or source.chance(0.5)
                else source.any(("count down from {}", "count backwards from {}",
                                 "count back from {}")).format(high))
    elif kind == "to":
        numbers = range(1, high + 1)
        text = source.pick(COUNT_TO).format(high)
    else:
        numbers = range(low, high + 1)
        text = source.pick(COUNT_UP).format(low, high)
    return text, ", ".join(map(str, numbers)) + "."


def adding(source):
    while True:
        a, b = source.number(0, 20), source.number(0, 20)
        if source.owns("add", a, b):
            break
    words = source.chance(0.12)
    shown = (NUMBER_WORDS[a], NUMBER_WORDS[b]) if words else (a, b)
    template = source.pick(ADDITIONS)
    return template.format(*shown), f"{a} + {b} = {a + b}."


KINDS = (greeting, fixed, fixed, colour, day, counting, counting, adding, adding, adding, adding)


def exchange(source, kind=None):
    """A question and its answer, as two messages."""
    question, answer = (kind or source.any(KINDS))(source)
    return [Message("user", typed(source, question)), said(answer)]


def dialogue(source):
    return Dialogue("basics", exchange(source))
