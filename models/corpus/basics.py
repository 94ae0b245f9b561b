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
             " little model", " buddy", " there you", " dear model", " dear friend", " machine",
             " robot", " tiny one", " tiny", " little bot", " sluice tiny", " dear", " all",
             " folks", " pal", " mate", " neighbour", " stranger", " again, friend",
             " my little model", " small model", " dear sluice", " my dear")
GREETING_TAILS = ("", "", "", "how are you?", "nice to meet you", "how is it going?",
                  "how do you do?", "are you there?", "can you hear me?", "how are you today?",
                  "good to see you", "are you awake?", "what's up?", "how are things?",
                  "I am new here", "is anybody there?", "how are you doing?", "how do you feel?",
                  "how have you been?", "how is your day?", "are you well?", "are you ok?",
                  "are you online?", "are you on?", "are you working?", "do you hear me?",
                  "can you read me?", "nice to see you", "pleased to meet you", "glad to meet you",
                  "good to meet you", "happy to see you", "I am back", "I am here", "here I am",
                  "long time no see", "what is up?", "what is new?", "anyone there?",
                  "anybody home?", "is anyone here?", "I just arrived", "it is me", "let us talk",
                  "I want to talk")
INTRODUCTIONS = ("I am {}", "I'm {}", "my name is {}", "this is {}", "{} here", "call me {}",
                 "the name is {}", "it is me, {}", "you can call me {}", "I am called {}",
                 "my friends call me {}", "people call me {}", "{} is my name",
                 "{} is what they call me", "I go by {}", "I am {}, by the way", "my name's {}",
                 "they call me {}", "everybody calls me {}", "it is {}", "it's {}", "it's me, {}",
                 "here is {}", "here speaks {}", "{} speaking", "{} is here",
                 "I am the one called {}", "you are talking to {}", "you may call me {}",
                 "please call me {}", "just call me {}", "I would be {}", "me, I am {}")

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
        "what kind of thing are you?", "who's there?", "who is talking?", "say your name",
        "tell me what you are", "what are you called?", "what is your name, please?",
        "name yourself", "which program is this?", "what program are you?", "which model is this?",
        "which model answers me?", "what model answers me?", "who answers me?",
        "who is answering?", "who am I talking with?", "who am I writing to?",
        "with whom am I speaking?", "who do I talk to?", "who is on the other end?",
        "are you an assistant?", "are you a chatbot?", "are you a machine?", "are you a robot?",
        "are you software?", "are you an AI model?", "are you artificial?",
        "what type of model are you?", "which kind of model are you?",
        "what sort of model are you?", "do you have any name?", "how are you called?",
        "how should I call you?", "how may I call you?", "give me your name",
        "I want to know who you are", "I want to know your name", "can you tell me who you are?",
        "can you introduce yourself?", "present yourself", "what is this thing?",
        "what is this program?", "what is this model?", "what model is it?", "what am I running?",
        "which model am I using?", "what model am I using?", "what have I started?",
        "state your name", "tell me something about yourself", "tell us who you are",
        "who might you be?", "what might you be?", "and what are you?", "ok, and who are you?",
        "who exactly are you?", "what are you really?", "is your name Sluice?", "is this Sluice?",
        "is this Sluice Tiny?", "is this a model?", "is this a bot?", "is this an AI?",
        "is this a computer?", "are you some kind of AI?"),
    "No, I am a tiny built-in model, not a person.": (
        "are you human?", "are you a person?", "are you a real person?", "are you alive?",
        "am I talking to a human?", "are you a human being?", "do you have a body?",
        "is there a person behind you?", "do you have feelings?", "are you a man or a woman?",
        "are you conscious?", "do you sleep?", "do you eat?", "are you real?", "how old are you?",
        "do you have a family?", "are you somebody real?", "is this a human?", "are you a woman?",
        "are you a man?", "do you feel pain?", "is a human answering me?",
        "are you a living being?",
        "do you dream?", "are you a human or a machine?", "am I speaking with a person?",
        "do you feel anything?", "are you a real human?", "are you a living thing?", "do you live?",
        "are you a man?", "is there somebody real?", "do you have a heart?",
        "are you a boy or a girl?", "are you a human?", "are you somebody?",
        "are you a person or a machine?", "is this a person?", "is this a real person?",
        "is somebody there?", "are you made of flesh?", "do you have a soul?",
        "do you have a brain?", "do you have legs?", "do you have parents?",
        "do you have children?", "do you have friends?", "do you have emotions?",
        "do you have a mind?", "do you breathe?", "do you get tired?", "do you drink?",
        "do you have a birthday?", "when were you born?", "what is your age?", "what age are you?",
        "how many years old are you?", "were you born?", "are you self-aware?",
        "are you sentient?", "are you aware?", "are you awake like a person?", "are you a girl?",
        "are you a boy?", "are you male or female?", "am I chatting with a human?",
        "am I talking to a person?", "am I talking to a real person?", "am I speaking to a human?",
        "do I talk to a human?", "is it a human who answers?", "do you feel?", "do you feel sad?",
        "can you feel?", "can you feel pain?", "do you have thoughts?", "do you live somewhere?",
        "are you living?", "do you die?", "is there a human there?", "is there a man behind this?",
        "are you like a human?", "are you like me?"),
    "No, I am only a tiny built-in model. For a large one, start sluice with --model FILE.": (
        "are you ChatGPT?", "are you Claude?", "are you GPT-4?", "are you Gemini?",
        "are you Llama?",
        "are you a large language model?", "are you a big model?", "are you smart?",
        "are you intelligent?", "do you know everything?", "are you Mistral?", "are you clever?",
        "can you answer everything?", "are you as good as ChatGPT?", "are you a large model?",
        "are you Siri?", "are you Alexa?", "are you better than GPT-4?", "do you know a lot?",
        "are you Qwen?", "can you do everything?", "are you very intelligent?",
        "is this ChatGPT?", "are you a powerful model?", "is this Claude?", "is this Llama?",
        "are you very smart?", "are you really intelligent?", "do you know all things?",
        "do you know many things?", "are you the best model?", "are you a Llama model?",
        "are you a GPT?", "are you DeepSeek?", "are you made by OpenAI?", "are you a huge model?",
        "are you GPT-3?", "are you GPT-5?", "are you Grok?", "are you Copilot?", "are you Phi?",
        "are you Gemma?", "are you Falcon?", "are you Bard?", "are you Cortana?",
        "are you a large one?", "are you big?", "are you large?", "are you huge?",
        "are you powerful?", "are you strong?", "are you wise?", "are you bright?",
        "are you genius?", "are you a genius?", "are you good at everything?",
        "can you do all things?", "can you solve everything?", "can you solve any problem?",
        "do you know all?", "do you know the answer to everything?", "do you know much?",
        "how smart are you?", "how clever are you?", "how intelligent are you?",
        "are you smarter than me?", "are you smarter than ChatGPT?", "are you better than Claude?",
        "are you like ChatGPT?", "are you like Claude?", "are you as smart as Gemini?",
        "are you as big as Llama?", "is this Gemini?", "is this GPT-4?", "is this Mistral?",
        "is this a large model?", "is this a big model?", "is this a large language model?",
        "are you from OpenAI?", "are you from Google?", "did OpenAI make you?",
        "did Google make you?", "are you a big language model?", "are you a frontier model?"),
    ABOUT: (
        "what can you do?", "what are you good at?", "help", "how can you help me?",
        "what do you know?", "what are your abilities?", "what can I ask you?", "what do you do?",
        "what are you able to do?", "list your abilities", "how can I use you?", "can you help me?",
        "what are your skills?", "what is it that you can do?", "tell me what you can do",
        "what should I ask you?", "show me what you can do", "what may I ask?", "I need help",
        "give me some help", "what are you for?", "what can I do with you?", "help me",
        "please help me", "some help please",
        "how do I use you?", "what can you help me with?", "what things can you do?",
        "what else can you do?", "which things can you do?", "can you do anything?",
        "what is it you do?", "what all can you do?", "what do you offer?", "what can you offer?",
        "what are you made for?", "what is your purpose?", "what is your job?",
        "what is your use?", "how do you help?", "how can you be of use?",
        "how can you be useful?", "what could you do?", "what could I ask?",
        "what can one ask you?", "what questions can I ask?", "which questions can I ask?",
        "what do you understand?", "what are you capable of?", "name your skills",
        "name your abilities", "list your skills", "list what you can do", "say what you can do",
        "explain what you can do", "show me your abilities", "tell me your abilities",
        "tell me your skills", "which skills do you have?", "what skills do you have?",
        "which abilities do you have?", "what talents do you have?", "I need some help",
        "I need your help", "could you help me?", "can you give me help?", "will you help me?",
        "how does this work?", "how do I start?", "where do I start?",
        "give me examples of what you can do", "what works?", "what is possible here?",
        "what can I do here?", "show help", "help please", "more help", "usage"),
    "The Sluice authors trained me from scratch on a plain processor.": (
        "who made you?", "who trained you?", "who built you?", "where do you come from?",
        "who created you?", "how were you made?", "how were you trained?", "who are your authors?",
        "who wrote you?", "who is your maker?", "where were you made?", "who developed you?",
        "how were you created?", "what company made you?", "tell me who made you",
        "who are your makers?", "who is behind you?", "who programmed you?",
        "how did they train you?",
        "who is your author?", "who is your creator?", "where were you trained?",
        "who are your creators?", "who coded you?", "who designed you?", "who invented you?",
        "who taught you?", "who produced you?", "who gave you life?", "who owns you?",
        "who set you up?", "where are you from?", "where do you come from, model?",
        "what made you?", "what is your origin?", "how did you come about?", "how were you built?",
        "how did they make you?", "how did you learn?", "how did you get trained?",
        "how were you taught?", "what were you trained on?", "on what were you trained?",
        "on what machine were you trained?", "which company made you?",
        "which company trained you?", "which people made you?", "which team made you?",
        "tell me who trained you", "tell me who built you", "tell me who created you",
        "tell me how you were made", "tell me where you come from", "say who made you",
        "do you know who made you?", "do you know who trained you?",
        "can you tell me who made you?", "by whom were you made?", "by whom were you trained?",
        "were you trained from scratch?", "are you trained from scratch?",
        "when were you trained?", "what is your history?"),
    "I am tiny: I have fewer than two million parameters.": (
        "how big are you?", "how many parameters do you have?", "what size are you?",
        "are you small?", "how large are you?", "are you tiny?", "how small are you?",
        "what is your size?", "are you a small model?", "how many weights do you have?",
        "tell me your size", "how many parameters are in you?", "are you a tiny model?",
        "what is your parameter count?",
        "how big is this model?", "how large is this model?", "are you little?",
        "how tiny are you?", "are you short?", "are you very small?", "are you very tiny?",
        "are you really small?", "are you really tiny?", "are you that small?",
        "how little are you?", "how small is this model?", "how tiny is this model?",
        "how many parameters are there?", "how many parameters does this model have?",
        "how many parameters has this model?", "how many weights are in you?",
        "how many weights does this model have?", "how many numbers are in you?",
        "what is the size of this model?", "what is the size of the model?",
        "what size is this model?", "what size is the model?", "which size are you?",
        "which size do you have?", "how big is the model?", "how big are you, model?",
        "how large is the model?", "number of parameters?", "parameter count?", "your size?",
        "your size, please", "say your size", "say how big you are", "tell me how big you are",
        "tell me how small you are", "tell me how many parameters you have",
        "do you have many parameters?", "do you know your size?", "give me your size",
        "is this model small?", "is this model tiny?", "is this a small model?",
        "is this a tiny model?"),
    "You are welcome.": (
        "thanks", "thank you", "thank you very much", "thanks a lot", "many thanks",
        "great, thanks",
        "thank you so much", "ok thanks", "cheers", "perfect, thank you", "nice, thanks",
        "thanks for your help", "well done, thank you", "good job", "well done", "thanks again",
        "thanks very much", "thank you a lot", "that helped, thanks", "great job",
        "thank you, model",
        "thanks, friend", "thank you for the help", "thank you kindly", "thank you, friend",
        "thanks, model", "thanks, that helped", "thanks for the help", "thanks for this",
        "thanks for that", "thank you for this", "thank you for that", "thank you for your help",
        "thank you for everything", "thanks for everything", "ok, thank you", "okay, thanks",
        "alright, thanks", "great, thank you", "good, thanks", "fine, thanks", "cool, thanks",
        "lovely, thanks", "wonderful, thank you", "perfect, thanks", "super, thanks",
        "much appreciated", "I appreciate it", "I thank you", "I am grateful", "thx", "ty",
        "nice job", "nice work", "good work", "great work", "excellent work", "you did well",
        "very good", "very nice, thanks", "that was helpful", "that was good, thanks",
        "that is great, thanks", "that is nice, thank you", "well done, model", "bravo",
        "awesome, thanks", "a thousand thanks", "all good, thanks", "that is very kind, thanks"),
    "Goodbye!": (
        "bye", "goodbye", "see you", "see you later", "bye bye", "good night", "farewell",
        "that is all, bye", "I have to go", "until tomorrow", "see you tomorrow", "ok bye",
        "have a nice day", "good bye", "so long", "take care", "goodbye, and take care",
        "bye, take care",
        "farewell, friend", "farewell, little model", "good bye, friend", "bye for now",
        "goodbye for now", "see you soon", "see you next time", "have a good day",
        "I am leaving, bye", "bye, model", "bye, friend", "bye then", "bye now", "ok, goodbye",
        "ok, see you", "okay, bye", "alright, bye", "well, goodbye", "goodbye, model",
        "goodbye, friend", "goodbye then", "good night, model", "good night, friend", "sleep well",
        "see you around", "see you again", "see you later, friend", "see you on Monday",
        "see you then", "see ya", "later", "talk to you later", "talk to you tomorrow",
        "talk to you soon", "speak to you later", "until later", "until next time", "until then",
        "till tomorrow", "till later", "till next time", "catch you later", "I am off, bye",
        "I am going now", "I am going, goodbye", "I must go", "I must leave", "I must leave now",
        "I need to go", "I need to leave", "I have to leave", "I have to go now", "time to go",
        "time to leave, bye", "that was all, goodbye", "that's all, bye", "that's it, bye",
        "we are done, bye", "have a nice evening", "have a nice weekend", "have a good evening",
        "have a good night", "have a good one", "have a lovely day", "have a great day",
        "enjoy your day", "take care, model", "take care, friend", "take care now",
        "take good care", "farewell, model", "farewell then", "adieu", "so long, friend",
        "be well", "stay well", "goodbye and thanks"),
    "There are seven days in a week.": (
        "how many days are in a week?", "how many days does a week have?",
        "how long is a week in days?", "how many days has a week?", "count the days of a week",
        "how many days make a week?", "a week has how many days?",
        "what is the number of days in a week?",
        "how many days are there in a week?", "tell me how many days a week has",
        "how long is a week?", "how many days long is a week?",
        "do you know how many days a week has?", "a week is how many days?", "a week is how long?",
        "how many days in a week?", "number of days in a week?", "the number of days in a week?",
        "what number of days has a week?", "in a week, how many days are there?",
        "one week has how many days?", "one week is how many days?",
        "how many days are in one week?", "how many days does one week have?",
        "how many days are a week?", "how many days form a week?",
        "give me the number of days in a week", "tell me the number of days in a week",
        "say how many days a week has", "tell me how many days are in a week",
        "can you tell me how many days a week has?", "can you say how many days are in a week?",
        "are there seven days in a week?", "does a week have seven days?",
        "is a week seven days long?", "tell me how long a week is"),
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday.": (
        "list the days of the week", "name the days of the week", "what are the days of the week?",
        "which days are there?", "tell me the days of the week", "what days are there in a week?",
        "name all days", "list all days", "say the days of the week",
        "give me the days of the week",
        "name the seven days", "which days does a week have?", "list the seven days of the week",
        "which days are in a week?", "list the days", "name the days", "tell me all days",
        "tell me the seven days", "what are the seven days?", "days of the week?",
        "the days of the week?", "the days of the week, please", "all days of the week",
        "all the days of the week", "the seven days of the week", "seven days?",
        "what days are in the week?", "what days are in a week?", "what days does a week have?",
        "what days are there?", "what are the days in a week?", "what are the days?",
        "what are all the days?", "what are the names of the days?",
        "which days are there in a week?", "which days are in the week?",
        "which are the days of the week?", "which days has a week?", "week days?", "weekdays?",
        "list the weekdays", "name the weekdays", "list all the days", "name all the days",
        "name all seven days", "list all seven days", "say all days",
        "say all the days of the week", "say the days", "say the seven days",
        "write the days of the week", "write down the days of the week",
        "show me the days of the week", "give me all days", "give me all the days",
        "give me the days", "give me the seven days", "tell me the days",
        "tell me all the days of the week", "tell me which days there are",
        "do you know the days of the week?", "can you list the days of the week?",
        "can you name the days of the week?", "can you tell me the days of the week?",
        "from Monday on, name the days", "recite the days of the week", "recite the days",
        "enumerate the days of the week"),
    "Red, yellow and blue.": (
        "name three colours", "tell me three colours", "list some colours",
        "which colours do you know?",
        "name some colours", "give me three colours", "what colours are there?",
        "say three colours",
        "list three colours", "can you name a few colours?", "name a few colours",
        "tell me some colours", "what colours do you know?", "list a few colours", "list colours",
        "tell me a few colours", "name colours", "say some colours", "give me some colours",
        "give me colours", "give me a few colours", "give me a list of colours",
        "a few colours, please", "some colours, please", "three colours, please", "three colours?",
        "some colours?", "colours?", "which colours are there?", "which colours exist?",
        "what colours exist?", "what colours can you name?", "which colours can you name?",
        "do you know colours?", "do you know any colours?", "do you know some colours?",
        "do you know three colours?", "can you name colours?", "can you name three colours?",
        "can you name some colours?", "can you list colours?", "can you tell me some colours?",
        "can you tell me three colours?", "could you name three colours?",
        "could you name a few colours?", "list the colours", "list the colours you know",
        "name the colours you know", "tell me the colours you know", "tell me colours",
        "say colours", "say a few colours", "write three colours", "write some colours",
        "show me three colours", "show me some colours", "enumerate some colours",
        "mention three colours", "mention some colours"),
}
COLOUR_QUESTIONS = ("what colour is {}?", "which colour does {} have?", "tell me the colour of {}",
                    "what is the colour of {}?", "what colour does {} have?", "which colour is {}?",
                    "the colour of {}?", "do you know the colour of {}?", "say the colour of {}",
                    "what colour has {}?", "what would you say is the colour of {}?",
                    "name the colour of {}", "{} is what colour?", "{} has which colour?",
                    "{}: what colour?", "{}, which colour?", "what is the colour {} has?",
                    "give me the colour of {}", "colour of {}?",
                    "can you tell me the colour of {}?", "can you say what colour {} is?",
                    "I want to know the colour of {}", "of what colour is {}?",
                    "of which colour is {}?", "do you know what colour {} is?",
                    "do you know which colour {} has?", "tell me what colour {} is",
                    "tell me which colour {} has", "say what colour {} is",
                    "what colour would {} be?", "what colour do you see on {}?",
                    "what's the colour of {}?", "if you see {}, what colour is it?",
                    "{}'s colour?", "how is {} coloured?", "is {} red or blue or what?",
                    "describe the colour of {}", "in what colour is {}?", "which colour has {}?",
                    "the colour that {} has?", "think of {}: what colour is it?")
MIX_QUESTIONS = ("what do {} and {} make?", "what colour do you get from {} and {}?",
                 "mix {} and {}",
                 "what is {} mixed with {}?", "what happens when I mix {} and {}?",
                 "which colour is {} plus {}?", "what do you get when you mix {} with {}?",
                 "if I mix {} and {}, what do I get?", "what colour do {} and {} give?",
                 "blend {} with {}", "{} and {} together make what colour?",
                 "what colour is a mix of {} and {}?", "which colour do {} and {} make?",
                 "{} and {} give what?", "{} and {} make what?", "{} plus {} is which colour?",
                 "{} plus {}: which colour?", "{} mixed with {}?", "{} mixed with {} gives what?",
                 "what is {} plus {} as a colour?", "what do I get when I mix {} and {}?",
                 "what do you get from {} and {}?", "what comes out of {} and {}?",
                 "what becomes of {} and {}?", "which colour comes from {} and {}?",
                 "which colour do I get from {} and {}?", "combine {} and {}",
                 "combine {} with {}", "what if I combine {} and {}?", "mix {} with {}",
                 "mixing {} and {} gives what?", "mixing {} with {} makes which colour?",
                 "the mix of {} and {}?", "a mix of {} and {}?", "tell me what {} and {} make",
                 "tell me the mix of {} and {}", "put {} and {} together",
                 "I mix {} and {}, what is it?", "when I mix {} with {}, what do I get?",
                 "together, {} and {} make?", "from {} and {} comes which colour?",
                 "can you mix {} and {}?", "do you know what {} and {} make?")
AFTER = ("which day comes after {}?", "what day is after {}?", "what is the day after {}?",
         "what comes after {}?", "which day follows {}?", "what day follows {}?",
         "today is {}, what is tomorrow?", "if today is {}, what day is tomorrow?",
         "the day after {}?",
         "tell me the day after {}", "name the day after {}", "it is {}, which day is tomorrow?",
         "after {} comes which day?", "after {} comes what?", "after {} comes?",
         "after {} is which day?", "after {}, which day is it?", "after {} what day comes?",
         "after {} which day follows?", "what day comes after {}?",
         "what day comes right after {}?", "which day is after {}?", "which day is next after {}?",
         "which day is right after {}?", "which day comes next after {}?",
         "which day will be after {}?", "which is the day after {}?",
         "what day will it be after {}?", "what follows {}?", "what is after {}?",
         "what is next after {}?", "what is tomorrow if today is {}?",
         "what is tomorrow when today is {}?", "which day is tomorrow if today is {}?",
         "if it is {} today, what is tomorrow?", "if it is {}, what is tomorrow?",
         "today it is {}, what day is tomorrow?", "today is {}. which day is tomorrow?",
         "today is {}; tomorrow is?", "when today is {}, what day is tomorrow?",
         "say the day after {}", "give me the day after {}", "say what comes after {}",
         "tell me what comes after {}", "tell me which day comes after {}",
         "do you know the day after {}?", "can you tell me the day after {}?",
         "the day that follows {}?", "next day after {}?", "{}, and then?",
         "{} is followed by which day?", "{} is followed by?", "{} is today, what is tomorrow?",
         "one day after {}?", "the next day after {}", "which day do we have after {}?")
BEFORE = ("which day comes before {}?", "what day is before {}?", "what is the day before {}?",
          "what comes before {}?", "which day is just before {}?",
          "today is {}, what was yesterday?", "if today is {}, what day was yesterday?",
          "the day before {}?", "tell me the day before {}", "name the day before {}",
          "it is {}, which day was yesterday?", "before {} comes which day?",
          "before {} comes what?", "before {} comes?", "before {} is which day?",
          "before {}, which day is it?", "before {} what day comes?",
          "before {} which day was it?", "what day comes before {}?",
          "what day comes right before {}?", "which day is before {}?",
          "which day is right before {}?", "which day comes just before {}?",
          "which day was before {}?", "which is the day before {}?", "what day was it before {}?",
          "what is before {}?", "what was before {}?", "what precedes {}?",
          "which day precedes {}?", "what was yesterday if today is {}?",
          "what was yesterday when today is {}?", "which day was yesterday if today is {}?",
          "if it is {} today, what was yesterday?", "if it is {}, what was yesterday?",
          "today it is {}, what day was yesterday?", "today is {}. which day was yesterday?",
          "today is {}; yesterday was?", "when today is {}, what day was yesterday?",
          "say the day before {}", "give me the day before {}", "say what comes before {}",
          "tell me what comes before {}", "tell me which day comes before {}",
          "do you know the day before {}?", "can you tell me the day before {}?",
          "the day that precedes {}?", "previous day of {}?", "{} follows which day?",
          "{} comes after which day?", "{} is today, what was yesterday?", "one day before {}?",
          "the previous day before {}", "which day did we have before {}?")
COUNT_UP = ("count from {} to {}", "count up from {} to {}", "please count {} to {}",
            "list the numbers from {} to {}", "say the numbers from {} to {}", "count {} to {}",
            "count from {} up to {}", "give me the numbers {} to {}", "numbers from {} to {}",
            "start at {} and count to {}", "write the numbers from {} to {}",
            "start counting at {} and stop at {}", "name the numbers from {} to {}",
            "begin at {} and count to {}", "show me the numbers from {} to {}",
            "count {} through {}", "count from {} until {}", "count from {} through {}",
            "counting from {} to {}", "numbers {} to {}", "numbers {} through {}",
            "the numbers from {} to {}", "the numbers {} to {}, please",
            "all numbers from {} to {}", "list all numbers from {} to {}", "list {} to {}",
            "say {} to {}", "tell me the numbers from {} to {}",
            "tell me all numbers from {} to {}", "from {} count to {}", "from {} to {}, count",
            "from {} up to {}", "go from {} to {}", "go up from {} to {}",
            "start with {} and count to {}", "start from {} and go to {}",
            "begin with {} and count up to {}", "begin counting at {} and end at {}",
            "count starting at {} and ending at {}", "I want the numbers from {} to {}",
            "I want you to count from {} to {}", "can you count from {} to {}?",
            "could you count from {} up to {}?", "will you count from {} to {}?",
            "let us count from {} to {}", "recite the numbers from {} to {}",
            "print the numbers from {} to {}", "count upwards from {} to {}", "count up {} to {}",
            "count between {} and {}", "which numbers go from {} to {}?",
            "what are the numbers from {} to {}?")
COUNT_TO = ("count to {}", "count up to {}", "count from one to {}", "can you count to {}?",
            "list the numbers up to {}", "say the numbers up to {}", "please count up to {}",
            "let us count to {}", "count aloud to {}", "count until {}", "could you count to {}?",
            "count for me up to {}", "I want you to count to {}", "count all the way to {}",
            "count up till {}", "count till {}", "counting to {}", "count, please, to {}",
            "count numbers to {}", "count the numbers to {}", "count the numbers up to {}",
            "numbers to {}", "numbers up to {}", "the numbers up to {}",
            "the numbers to {}, please", "all numbers to {}", "all numbers up to {}",
            "tell me the numbers to {}", "tell me all numbers up to {}",
            "give me the numbers up to {}", "write the numbers up to {}",
            "print the numbers up to {}", "show me the numbers to {}", "can you count up to {}?",
            "could you count up to {}?", "will you count to {}?", "would you count to {}?",
            "try to count to {}", "I want to hear you count to {}",
            "start counting and stop at {}", "begin to count and stop at {}", "go up to {}",
            "count upwards to {}", "count from the start to {}", "how do you count to {}?",
            "recite the numbers to {}", "just count to {}", "count with me to {}",
            "count slowly to {}")
COUNT_DOWN = ("count down from {} to {}", "count backwards from {} to {}",
              "count from {} down to {}",
              "count {} down to {}", "list the numbers from {} down to {}", "go down from {} to {}",
              "start at {} and count down to {}", "count back from {} to {}",
              "say the numbers from {} down to {}", "numbers from {} down to {}",
              "begin at {} and count down to {}", "write the numbers from {} down to {}",
              "count in reverse from {} to {}", "count downwards from {} to {}",
              "counting down from {} to {}", "count back down from {} to {}",
              "count backward from {} to {}", "countdown from {} to {}",
              "a countdown from {} to {}", "count in reverse, from {} to {}",
              "reverse count from {} to {}", "from {} count down to {}", "from {} down to {}",
              "from {} back to {}", "from {} count backwards to {}", "go backwards from {} to {}",
              "go from {} down to {}", "start with {} and count down to {}",
              "start at {} and count backwards to {}", "start from {} and go down to {}",
              "begin with {} and count backwards to {}",
              "begin counting down at {} and stop at {}", "give me the numbers from {} down to {}",
              "give me a countdown from {} to {}", "tell me the numbers from {} down to {}",
              "show me the numbers from {} down to {}", "the numbers from {} down to {}",
              "all numbers from {} down to {}", "list {} down to {}", "say {} down to {}",
              "can you count down from {} to {}?", "could you count backwards from {} to {}?",
              "will you count down from {} to {}?", "please count down from {} to {}",
              "let us count down from {} to {}", "I want you to count down from {} to {}",
              "count down: {} to {}", "backwards from {} to {}",
              "recite the numbers from {} back to {}")
ADDITIONS = ("what is {} + {}?", "what is {} plus {}?", "{} + {}", "{}+{}", "{} plus {}",
             "add {} and {}",
             "how much is {} plus {}?", "what's {} + {}?", "calculate {} + {}", "sum of {} and {}",
             "add {} to {}", "what is the sum of {} and {}?", "how much is {} and {}?",
             "{} + {} = ?",
             "what is {}+{}?", "what does {} plus {} make?", "compute {} plus {}",
             "tell me {} + {}",
             "what do {} and {} add up to?", "{} + {} is what?", "can you add {} and {}?",
             "how much is {} + {}?", "what's {}+{}?", "{} and {} make?", "{}+{}=",
             "{} plus {} is what?", "{} plus {} makes?", "{} plus {} equals?", "{} plus {} = ?",
             "{} + {} equals what?", "{} + {} makes what?", "{} + {} =", "{} +{}", "{}+ {}",
             "{} add {}", "{} and {} together?", "{} and {} is how much?",
             "{} and {} are how many?", "{} and {} added?", "{} added to {}?", "sum {} and {}",
             "sum up {} and {}", "sum: {} + {}", "the sum of {} and {}?",
             "the sum of {} and {}, please", "give me the sum of {} and {}", "give me {} + {}",
             "give me {} plus {}", "tell me the sum of {} and {}", "tell me {} plus {}",
             "tell me what {} plus {} is", "tell me what {} + {} is", "say what {} plus {} is",
             "find {} + {}", "find the sum of {} and {}", "compute {} + {}",
             "compute the sum of {} and {}", "calculate {} plus {}",
             "calculate the sum of {} and {}", "calculate {}+{}", "work out {} + {}",
             "work out {} plus {}", "add up {} and {}", "add {} plus {}", "add {} + {}",
             "add the numbers {} and {}", "add together {} and {}", "please add {} and {}",
             "what is {} and {}?", "what is {} added to {}?", "what makes {} plus {}?",
             "what does {} + {} make?", "what does {} + {} equal?", "what does {} plus {} equal?",
             "what do {} and {} make?", "what do you get when you add {} and {}?",
             "what is the total of {} and {}?", "what is the result of {} + {}?",
             "what's {} plus {}?", "what's the sum of {} and {}?", "how much are {} and {}?",
             "how much do {} and {} make?", "how much makes {} + {}?", "how many are {} and {}?",
             "can you compute {} + {}?", "can you tell me {} + {}?", "could you add {} and {}?",
             "do you know {} + {}?", "I have {} and get {} more, how many are that?",
             "if I add {} and {}, what do I get?", "solve {} + {}", "the result of {} + {}?",
             "{} and {} more make?")
OPENERS = ("please ", "can you tell me: ", "hey, ", "ok, ", "now ", "so, ", "hi, ", "and ",
           "well, ",
           "tell me, ", "hello, ", "quick question: ", "one more: ", "then ", "please, ",
           "ok then, ", "right, ",
           "again, ", "next, ", "I wonder, ", "my question: ", "sorry, ", "excuse me, ",
           "thanks, ", "listen, ", "look, ", "tell me: ", "please tell me: ", "now tell me: ",
           "a question: ", "question: ", "also, ", "alright, ", "good, ", "great, ", "hmm, ",
           "oh, ", "first, ", "finally, ", "but ", "could you tell me: ", "I want to know: ",
           "let me ask: ", "may I ask: ", "I ask you: ", "dear model, ", "model, ", "sluice, ",
           "good morning, ", "good evening, ", "hi there, ", "hello there, ", "thank you, ", "ok ",
           "hey ", "so ", "now, ", "then, ", "another question: ", "once more: ",
           "last question: ", "and now: ", "just ", "kindly ", "be so kind: ", "come on, ",
           "if you can, ")


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
    article = source.any(("the ", "a ")) if thing not in ("snow", "milk", "coal", "blood",
    "grass") \
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
