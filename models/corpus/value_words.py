"""The words that values of arguments are made of."""

MONTHS = ("January February March April May June July August September October November"
          " December").split()
RELATIVE_DAYS = ("today", "tomorrow", "tonight", "next week", "this evening", "next month", "this weekend",
                 "the day after tomorrow", "this afternoon", "next Monday", "next Friday", "this Sunday",
                 "next Tuesday", "this Thursday", "tomorrow morning", "tomorrow evening")
CITIES = """New York;San Francisco;Los Angeles;Rio de Janeiro;Cape Town;Hong Kong;Buenos Aires;Mexico City;
Tel Aviv;Abu Dhabi;Kuala Lumpur;San Diego;New Delhi;Salt Lake City;St. Gallen;The Hague;Sao Paulo;
Santa Cruz;Las Vegas;Ho Chi Minh City;Addis Ababa;Port Louis;Le Havre;Baden-Baden""".replace("\n",
                                                                                             "").split(";")
LANGUAGES = """English German French Spanish Italian Dutch Polish Swedish Turkish Japanese Korean Greek
Portuguese Danish Finnish Hindi Arabic Czech Hungarian Ukrainian Latin Thai Hebrew Romanian""".split()
CURRENCIES = """EUR USD GBP JPY CHF SEK NOK DKK PLN CZK HUF CAD AUD INR CNY BRL MXN ZAR TRY KRW euros
dollars pounds yen francs kroner rupees""".split()
MEASURES = """metres kilometres miles feet inches yards centimetres grams kilograms pounds ounces litres
km cm mm kg lb mi ft ml gallons pints cups celsius fahrenheit kelvin hours minutes seconds days
weeks bytes megabytes""".split()
ROOMS = """kitchen;bedroom;bathroom;living room;hallway;garage;office;attic;cellar;nursery;dining room;
garden;balcony;guest room;study;laundry room;porch;terrace;library;corridor""".replace("\n", "").split(";")
DISHES = """pizza margherita;tomato soup;green curry;apple pie;lentil stew;fish tacos;rice pudding;miso soup;
onion tart;bean salad;pumpkin risotto;potato gratin;banana bread;beef goulash;mushroom pasta""".replace(
    "\n", "").split(";")
CUISINES = "Italian Indian Thai Mexican Greek Turkish Korean vegan Lebanese Spanish Vietnamese French".split()
GENRES = "jazz rock pop techno folk blues opera reggae comedy drama horror thriller fantasy romance".split()
COLOURS = "red blue green yellow white black orange purple grey brown pink turquoise beige gold".split()
SERVICES = """nginx postgres redis billing auth gateway scheduler mailer search-api worker frontend indexer
payments kafka ingress cache-01 web-3 db-main""".split()
EXTENSIONS = "txt csv json md log pdf png jpg yaml html xml zip docx py conf sql".split()
TOP_LEVEL = "com org net io dev example eu info".split()
# Sentences that people want sent, noted or translated.
SENTENCES = (
    "I will be {d} minutes late", "See you at {t}", "The {n} is {a}", "Lunch is at {t}", "Bring the {n}",
    "Happy birthday, {N}!", "We moved the {n} to {D}", "Thanks for the {a} {n}", "Can we talk about the {n}?",
    "Please call {N} back", "The {n} broke down again", "Dinner at {N}'s place?", "No {n} today",
    "I left the {n} at home", "Buy {f} and {f}", "{N} said yes", "Where is the {a} {n}?",
    "Good luck with the {n}!",
    "The meeting starts at {t}", "My {n} arrives on {D}", "All {n}s are sold out", "It's raining, take a {n}",
    "Your {n} is ready", "Don't forget the {n}", "We need {d} more {n}s", "{N} is sick",
    "Are you coming on {D}?",
    "Check the {n} before {t}", "The door code is {d}{d}", "Ask {N} about the {n}", "I'm running late",
    "Pick up {N} at {t}", "How is the {n}?", "Great job on the {n}!", "The {a} {n} was a success",
    "I can't make it on {D}", "Water the plants", "Feed the {m}", "Call the {n} office",
    "Meet me near the {n}",
    "{N} and {N} are here", "Pay the {n} bill", "Let's start at {t}", "The {n} costs {d} euros",
    "Well done, {N}")
QUOTES = (('"', '"'), ("'", "'"), ("'", "'"), ("\u201c", "\u201d"), ("`", "`"))
SEARCHES = (
    "{a} {n} for {n}s", "how to fix a {n}", "best {f} in {N}", "{n} near {N}", "history of {N}", "{n} of {N}",
    "{a} {n} under {d} euros", "{n} vs {n}", "what is a {n}", "{a} {n}s with {n}", "{N} {n} {d}",
    "{n} in {N}",
    "how to paint a {a} {n}", "{f} recipe with {f}", "{n} repair for beginners", "why do {m}s sleep",
    "{n} opening hours", "cheap {n}s", "{N} to {N} by train", "latest {n} news", "{m} food",
    "{n} price in {N}")
# Words that a value may have as the sentence around it.
BETWEEN = ("in", "of", "for", "to", "near", "with", "a", "by", "do", "is")
# What people are reminded of and put on lists.
ERRANDS = (
    "call {N}", "buy {f}", "buy {f} and {f}", "water the plants", "take out the {n}", "pay the {n} bill",
    "pick up {N}", "feed the {m}", "write to {N}", "clean the {n}", "fix the {a} {n}", "book the {n}",
    "return the {n}", "check the {n}", "ask {N} about the {n}", "send {N} the {n}", "pack the {n}", "stretch",
    "order a new {n}", "visit {N}", "finish the {n}", "wash the {a} {n}", "drink some water",
    "cancel the {n}",
    "renew my {n}", "bring {f} home", "thank {N}", "charge the {n}", "print the {n}", "walk the dog",
    "sign the {n}", "empty the {n}", "go to the {n}", "sell the old {n}", "prepare the {n} talk", "meet {N}",
    "congratulate {N}", "paint the {n}", "lock the {n}", "take my pills", "study {n}", "review the {n} plan")
