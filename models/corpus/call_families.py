"""The families of requests for a call.

A family has a name, a mode, its keyed phrases and its sentences. {do} is a deed with its values, {ask} a
question with them, {bare} a deed without any, {vals} the values by the family's keyed phrases, {first} the value
that is said first, {it} a deed on "it", {f} an irrelevant clause. In a keyed phrase {p} is the parameter and {v}
the value. With {Do} and so on, it begins with a capital. The modes:

do      a deed, whose values stand where people put them
ask     a question, if the tool answers one
keyed   a deed, and then its values with their parameters
mixed   a deed with some values, and the others with their parameters
first   a value, and then what to do with it
it      the same, but the deed speaks of the value as "it"
context the same, after a clause with the value ({context})
before  the values as they hang to a sentence ({rest}), and then what to do
name    the tool's name as words ({name}), and the values
"""

from .families import Families

FILLERS = ("my sister is visiting", "it has been a long day", "I was up all night", "the dog is barking again",
           "I promised it to a friend", "we are in a bit of a hurry", "I keep forgetting this", "my boss is waiting",
           "I am on my way home", "the kids are asleep", "nobody else has the time", "it is my turn today",
           "I would do it myself", "my hands are full", "I cannot get to it now", "the others are at lunch",
           "I have no idea where to click", "we talked about it last week", "it came up in a meeting",
           "I nearly missed it", "my phone is almost empty", "the coffee is getting cold", "I just got back",
           "there is a lot going on here", "it is not urgent at all", "I hate doing this by hand")
KEYED = {
    "with": (" with {p} {v}", " and {p} {v}", " with the {p} {v}"),
    "colon": (", {p}: {v}", "; {p}: {v}"),
    "lines": ("\n{p}: {v}",),
    "dashes": ("\n- {p}: {v}", "\n- {p} = {v}"),
    "bullets": ("\n* {p} {v}",),
    "equals": (" {p}={v}", ", {p}={v}"),
    "spaced": (", {p} = {v}", " {p} = {v}"),
    "round": (" ({p} {v})", " ({p}: {v})"),
    "square": (" [{p}: {v}]", " [{p} {v}]"),
    "flags": (" --{p} {v}", " --{p}={v}"),
    "slashes": (" / {p} {v}",),
    "is": (". The {p} is {v}", ", the {p} is {v}", " and the {p} is {v}"),
    "should": (". {p} should be {v}", ", and {p} should be {v}"),
    "use": (". Use {v} for the {p}", " and use {v} as {p}", ". Use {v} as the {p}"),
    "take": (", taking {v} as the {p}", ", take {v} for {p}"),
    "as": (", {v} as {p}", " and {v} as the {p}"),
    "being": (", {p} being {v}", ", the {p} being {v}"),
    "where": (" where {p} is {v}", " and where {p} is {v}"),
    "set": (", {p} set to {v}", " with {p} set to {v}"),
    "for": (". For {p}: {v}", ". For the {p}, {v}"),
    "arrow": (", {p} -> {v}", " {p} -> {v}"),
    "pipe": (" | {p}: {v}", " | {p} {v}"),
    "says": (". I want {v} as the {p}", ". I'd say {v} for the {p}"),
    "goes": (". In the field {p} goes {v}", ". {v} goes into {p}"),
    "quoted": (', "{p}": {v}',),
    "having": (" having {v} as {p}", ", having {p} {v}"),
    "pick": (". Pick {v} as {p}", "; pick {v} as {p}"),
    "name": (". My {p}: {v}", ". My {p} would be {v}"),
    "put": (". Put {v} under {p}", " and put {v} under {p}"),
    "under": (". Under {p} write {v}", ", under {p} comes {v}"),
    "its": (", whose {p} is {v}", ", its {p} is {v}"),
}

CALLS = Families("calls", (
    # Bare, polite and impatient deeds.
    ("imperative", "do", "with", ("{Do}.", "{do}", "{Do}!", "{Do}")),
    ("please", "do", "with", ("Please {do}.", "please {do}", "{Do}, please.", "{Do} please")),
    ("can you", "do", "set", ("Can you {do}?", "can you {do}", "Can you {do} for me?", "Can you please {do}?")),
    ("could", "do", "where", ("Could you {do}?", "Could you quickly {do}?", "could you maybe {do}?")),
    ("would mind", "do", "as", ("Would you {do}?", "Would you be so good and {do}?", "Would you kindly {do}?")),
    ("possible", "do", "having", ("Is it possible to {do}?", "is there a way to {do}?", "Any chance to {do}?")),
    ("need to", "do", "is", ("I need to {do}.", "I need you to {do}.", "we need to {do}", "I need to {do} now.")),
    ("like to", "do", "use", ("I'd like to {do}.", "I would like you to {do}.", "I'd love to {do}.")),
    ("want", "do", "with", ("I want to {do}.", "I want you to {do}", "I wanna {do}", "we want to {do}")),
    ("must", "do", "colon", ("I have to {do}.", "I've got to {do}", "We must {do}.", "I gotta {do}.")),
    ("help", "do", "being", ("Help me {do}.", "help me to {do}", "I need help: {do}.", "Need some help to {do}.")),
    ("go ahead", "do", "as", ("Go ahead and {do}.", "go and {do}", "Just {do}.", "Be a dear and {do}.")),
    ("time", "do", "set", ("It's time to {do}.", "Time to {do}!", "About time to {do}.", "High time to {do}.")),
    ("let us", "do", "where", ("Let's {do}.", "let us {do}", "How about you {do}?", "Why don't you {do}?")),
    ("forgot", "do", "is", ("I forgot to {do}.", "I still have to {do}.", "Somebody has to {do}.",
                            "I never got round to it: {do}.")),
    ("next", "do", "with", ("Next, {do}.", "Then {do}.", "After that, {do}.", "And now {do}.", "Now {do}.")),
    ("job", "do", "colon", ("Your task: {do}.", "Your job is to {do}.", "Task: {do}", "To do: {do}",
                            "Assignment: {do}.")),
    ("greeting", "do", "having", ("Hi! {Do}.", "Hello, please {do}.", "Good morning! Could you {do}?",
                                  "hey, {do}", "Hey there, can you {do}?")),
    ("thanks", "do", "use", ("{Do}. Thanks!", "{do}, thank you", "{Do}, cheers.", "{Do}. Much appreciated!",
                             "{Do}, thx")),
    ("asked for", "do", "is", ("They asked me to {do}.", "I was told to {do}.", "My boss wants me to {do}.",
                               "I promised to {do}.", "We agreed to {do}.")),
    ("tool", "do", "with", ("Use a tool to {do}.", "With your tools, {do}.", "Pick the right tool to {do}.",
                            "You have a tool for that: {do}.")),
    ("would be great", "do", "as", ("It would be great if you could {do}.", "Would be nice if you {do}.",
                                    "It would help me if you could {do}.")),
    ("wonder", "do", "set", ("I was wondering if you could {do}.", "I wonder whether you can {do}.",
                             "I was hoping you could {do}.", "Do you think you could {do}?")),
    ("think of", "do", "being", ("Don't forget to {do}.", "Make sure to {do}.", "Remember to {do}, will you?",
                                 "See to it: {do}.")),
    # Clauses that have nothing to do with it.
    ("because", "do", "is", ("{F}, so please {do}.", "Since {f}, {do}.", "As {f}, could you {do}?")),
    ("but", "do", "with", ("{Do}, {f}.", "{Do}. Sorry, {f}.", "Please {do}, because {f}.")),
    ("situation", "do", "use", ("{F}. {Do}.", "{F}. Can you {do}?", "{F}! Please {do}.", "{F}... {do}")),
    ("chatty", "do", "colon", ("So, {f}, and what I need is this: {do}.", "Well, {f}. Anyway, {do}.",
                               "You know what, {f}, so {do}, ok?", "ok so {f} - {do}")),
    ("after all", "do", "where", ("{Do} - {f}, you see.", "{Do} ({f}).", "{Do}; {f}.")),
    ("two sentences", "do", "is", ("I have a request. {Do}.", "Here is what I need. {Do}.", "One thing. {Do}.",
                                   "Small favour: {do}.", "Quick one: {do}")),
    # Questions.
    ("question", "ask", "with", ("{Ask}?", "{ask}", "{ask}?")),
    ("tell me", "ask", "is", ("Tell me: {ask}?", "Tell me, {ask}?", "Quick question: {ask}?", "Say, {ask}?")),
    ("know", "ask", "colon", ("Do you know this: {ask}?", "I'd like to know: {ask}?", "I want to know {ask}.")),
    ("find out", "ask", "set", ("Can you find out for me: {ask}?", "Find out, please: {ask}?",
                                "Let me ask you this. {Ask}?")),
    ("filler question", "ask", "as", ("{F}. {Ask}?", "{F} - {ask}?", "{Ask}? {F}.")),
    ("greeting question", "ask", "use", ("Hello! {Ask}?", "Hi, {ask}?", "Hey, {ask}", "Excuse me, {ask}?")),
    # Values with their parameters.
    ("fields", "keyed", "lines", ("{Bare}{vals}", "Please {bare}:{vals}", "{Bare}:{vals}")),
    ("dashes", "keyed", "dashes", ("{Bare}:{vals}", "Could you {bare}, with these:{vals}")),
    ("bullets", "keyed", "bullets", ("{Bare} with{vals}", "I need you to {bare}:{vals}")),
    ("with keys", "keyed", "with", ("{Bare}{vals}.", "Please {bare}{vals}", "can you {bare}{vals}?")),
    ("colons", "keyed", "colon", ("{Bare}{vals}", "I want to {bare}{vals}.", "{Bare} please{vals}")),
    ("equals", "keyed", "equals", ("{bare}{vals}", "{Bare}:{vals}", "go {bare}{vals}")),
    ("spaced", "keyed", "spaced", ("{Bare}{vals}", "would you {bare}{vals}?")),
    ("round", "keyed", "round", ("{Bare}{vals}.", "Let's {bare}{vals}")),
    ("square", "keyed", "square", ("{bare}{vals}", "Kindly {bare}{vals}.")),
    ("flags", "keyed", "flags", ("{bare}{vals}", "> {bare}{vals}")),
    ("statements", "keyed", "is", ("{Bare}{vals}.", "I'd like to {bare}{vals}.", "You should {bare}{vals}.")),
    ("wishes", "keyed", "should", ("{Bare}{vals}.", "I have to {bare}{vals}.")),
    ("usage", "keyed", "use", ("{Bare}{vals}.", "Please {bare}{vals}.")),
    ("taken", "keyed", "take", ("{Bare}{vals}.", "Now {bare}{vals}, please.")),
    ("for each", "keyed", "for", ("{Bare}{vals}.", "Could you {bare}{vals}.")),
    ("arrows", "keyed", "arrow", ("{Bare}{vals}", "{bare}:{vals}")),
    ("pipes", "keyed", "pipe", ("{Bare}{vals}", "request: {bare}{vals}")),
    ("says", "keyed", "says", ("{Bare}{vals}.", "I need to {bare}{vals}.")),
    ("goes", "keyed", "goes", ("{Bare}{vals}.", "Help me {bare}{vals}.")),
    ("json", "keyed", "quoted", ("{Bare}{vals}", "{bare} with this{vals}")),
    ("picked", "keyed", "pick", ("{Bare}{vals}.", "Go and {bare}{vals}.")),
    ("own", "keyed", "name", ("{Bare}{vals}.", "Hello, I want to {bare}{vals}.")),
    ("put under", "keyed", "under", ("{Bare}{vals}.", "We should {bare}{vals}.")),
    ("its", "keyed", "its", ("{Bare}{vals}.", "it is time to {bare}{vals}")),
    ("slashes", "keyed", "slashes", ("{bare}{vals}", "{Bare}{vals} please")),
    ("values ahead", "ahead", "being", ("With {vals}, {bare}.", "Given {vals}: {bare}.", "{vals} - {bare}")),
    ("values before", "ahead", "with", ("For {vals}, please {bare}.", "{vals}. {Bare}.", "I have {vals}. {Bare}.")),
    # Some values in place, others named.
    ("mixed with", "mixed", "with", ("{Do}.", "Please {do}.", "Could you {do}?")),
    ("mixed is", "mixed", "is", ("{Do}.", "I want to {do}.", "Next, {do}.")),
    ("mixed round", "mixed", "round", ("{Do}", "Let me {do}.", "{F}. {Do}")),
    ("mixed use", "mixed", "use", ("{Do}.", "Be so kind and {do}.", "Hey, {do}.")),
    ("mixed colon", "mixed", "colon", ("{do}", "I have to {do}", "pls {do}")),
    ("mixed put", "mixed", "put", ("{Do}.", "My wish: {do}.", "We have to {do}.")),
    # A value comes first.
    ("topic first", "first", "with", ("{first}: {bare}{vals}.", "{first} - {bare}{vals}", "{first}. {Bare}{vals}.")),
    ("this is", "first", "is", ("It is about {first}. {Bare}{vals}.", "This is about {first}: {bare}{vals}.")),
    ("concerning", "first", "as", ("As for {first}, {bare}{vals}.", "Concerning {first}: please {bare}{vals}.",
                                   "Regarding {first}, could you {bare}{vals}?")),
    ("take first", "first", "set", ("Take {first} and {bare}{vals}.", "Here you have {first}. Now {bare}{vals}.",
                                    "You get {first}, so {bare}{vals}.")),
    ("thinking", "first", "use", ("I'm thinking of {first}. Can you {bare}{vals}?",
                                  "I have {first} in mind, {bare}{vals}.")),
    ("deal with", "it", "with", ("There is {first}. {It}.", "Look at {first}. Please {it}.",
                                 "I've got {first} here. {It}.", "{first}: {it}")),
    ("about it", "it", "is", ("You know {first}? {It}.", "See {first}? Could you {it}?", "{first}, {it} please.")),
    ("still it", "it", "colon", ("We still have {first}. I'd like you to {it}.", "{first} is on my mind; {it}.",
                                 "It's {first} again. {It}!")),
    ("context", "context", "with", ("{context}. {It}.", "{context}, so {it}.", "{context}. Can you {it}?")),
    ("context question", "context", "with", ("{context} - {it}?", "{context}... {it}", "{context}: {it}")),
    ("context polite", "context", "with", ("{context}. Could you please {it}?", "Hi! {context}. {It}, please.")),
    # Where and when come first.
    ("adverbs", "before", "with", ("{Rest}, {bare}.", "{rest}, please {bare}", "{Rest}: {bare}")),
    ("adverbs polite", "before", "with", ("{Rest}, could you {bare}?", "{Rest} I need you to {bare}.")),
    ("adverbs and", "before", "with", ("It is {rest} that I want to {bare}.", "{Rest}, I have to {bare}.")),
    # The name of the tool.
    ("names", "name", "with", ("{Name}{rest}.", "{name}{rest}", "{name}{rest}, please")),
    ("names called", "name", "with", ("Call {name}{rest}.", "use {name}{rest}", "do a {name}{rest}")),
    ("names wanted", "name", "with", ("I want a {name}{rest}.", "I need {name}{rest}", "one {name}{rest} please")),
    # Telegrams.
    ("telegram", "keyed", "telegram", ("{bare}{vals}", "{Bare}{vals}", "{bare}:{vals}")),
    ("value telegram", "first", "telegram", ("{first}, {bare}{vals}", "{first} {bare}{vals}")),
), held_out=("would be great", "wonder", "forgot", "chatty", "after all", "find out", "bullets", "says", "goes",
             "for each", "picked", "take first", "about it", "mixed put", "context polite", "adverbs and",
             "names wanted"))
KEYED["telegram"] = (" {p} {v}", ", {p} {v}")
# Clauses about the value that is said first, by what it is.
CONTEXTS = {
    "city": ("I am flying to {v}", "My aunt lives in {v}", "We are going to {v}", "{v} is where I am",
             "I am staying in {v}", "we just arrived in {v}", "there is a meeting in {v}", "I might move to {v}",
             "my train goes to {v}", "she was born in {v}", "I read about {v}", "we have an office in {v}"),
    "path": ("I wrote everything into {v}", "there should be a file {v}", "{v} came with the mail",
             "I found {v} on my disk", "somebody changed {v}", "all of it is in {v}", "you know the file {v}",
             "{v} looks odd", "I cannot open {v}"),
    "person": ("I met {v} today", "{v} is in the office", "my colleague is called {v}", "it is for {v}",
               "I promised it to {v}", "{v} called again", "you know {v}", "I just talked to {v}"),
    "": ("I have {v} here", "I saw {v}", "this is {v}", "we talked about {v}", "{v} is what I mean",
         "somebody gave me {v}", "I am looking at {v}", "there was something with {v}", "it says {v} here",
         "I have heard of {v}", "you remember {v}", "now it is about {v}"),
}
# For booleans where values stand in place.
SWITCHED = (" with {p} {v}", ", {p} {v}", " and {p} {v}", ", {p}: {v}", " ({p} {v})", ". {p} {v}")
