"""The words of the corpus. Source.pick() gives one side of the wall five of six."""

NOUNS = """weather ticket order invoice photo song album playlist recipe note memo report letter
message email contact meeting event reminder alarm timer task project ticket flight hotel room table
train bus taxi route map address city country river mountain bridge tower garden park museum library
book chapter page article story poem movie film actor team player match score game level quest badge
coin wallet price stock share bond loan account balance payment refund receipt discount coupon cart
product parcel package shipment delivery warehouse shelf box bottle cup plate spoon kitchen oven
fridge lamp light switch door window camera sensor motor pump valve tank filter heater fan battery
robot drone car truck bike boat plane rocket planet star moon comet galaxy signal channel radio
video clip stream playlist image picture drawing chart graph diagram table row column cell sheet file
folder disk server network router host port socket packet query index record entry log metric
backup snapshot cluster node branch commit patch release build test bug issue review comment
user group role badge key token password profile avatar session visitor member doctor nurse patient
clinic dose pill vaccine allergy diet meal snack soup salad bread cheese apple lemon carrot onion
farm field barn horse cow sheep goat duck owl fox bear wolf whale shark beach island harbour wave
tide storm rain snow cloud wind season calendar clock watch ring necklace jacket shoe hat glove
shirt dress sofa chair desk bed carpet curtain mirror candle hammer screw nail ladder rope
wheel engine brake tyre licence permit passport visa border customs tax budget salary bonus contract
clause lawyer court case vote ballot survey quiz lesson course grade pupil teacher school exam essay
word phrase sentence synonym rhyme language alphabet dictionary riddle joke quote fact rumour
headline newspaper magazine podcast episode interview speech debate concert festival ticket stage
costume puppet balloon kite marble dice puzzle domino chess card trophy medal tournament""".split()

VERBS = """get find show list send create delete open close start stop read write update check count
search fetch book cancel move copy rename print export import load save play pause record measure
convert translate compare sort filter merge split scan lock unlock enable disable reset restart
archive publish share assign approve reject rate review schedule track order return repair paint
clean fill empty label plan draw build describe summarise rank test verify reserve renew water feed
register subscribe mute ping launch land park charge wash fold cook mix bake""".split()

ADJECTIVES = """red small old quiet bright new local daily weekly monthly global public private secret
fresh broken hidden active idle open closed urgent late early cheap rare golden silver wooden
stone glass paper blue green dusty windy frozen sunny foggy silent hollow crooked gentle purple
northern southern eastern western upper lower empty busy lonely ancient tiny giant round narrow
wild misty rocky sandy mossy velvet copper amber marble""".split()

STRING_PARAMETERS = """name city title text query place person subject topic label user word colour
street country language author owner artist key tag code path target source host branch email
category message comment keyword reason genre brand model street region unit currency format mode
destination origin ingredient product recipient sender folder file group channel status kind shape
material flavour season station airport team player animal plant planet""".split()

INTEGER_PARAMETERS = """count limit days hours minutes seconds size number amount year level page
width height depth age quantity seats guests rooms rows columns steps pages items retries port speed
weight distance volume priority score rounds copies nights floor line offset delay points length
interval_ms timeout_ms max_items batch_size""".split()

ANIMALS = """fox bear owl mouse hare otter badger hedgehog squirrel wolf deer frog toad duck goose
heron crow robin cat dog goat lamb pony donkey beaver mole snail turtle rabbit ferret lynx seal
whale penguin parrot finch swan crab bee beetle dragon robot giant wizard baker sailor miller
painter gardener fisher shepherd smith tailor piper clockmaker""".split()

PLACES = """forest lighthouse river mill garden tower valley meadow village harbour castle cave hill
lake island bridge market orchard library windmill station bakery barn beach cellar chapel farm
field fountain grove inn marsh mountain museum palace pond quarry school shipyard square temple
theatre tunnel vineyard well workshop observatory greenhouse glacier canyon
desert jungle city zoo kitchen attic playground train hotel circus swamp farmhouse stable cottage hospital
airport submarine waterfall volcano cloud moon""".split()

OBJECTS = """lantern key map bell drum kite book coin feather basket ribbon whistle compass candle
ladder shell mirror teapot button umbrella flute hat clock ring stone spoon boat scarf""".split()

FOODS = """bread soup cake honey cheese apples pears berries pancakes porridge nuts plums""".split()

NAMES = """Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Klara Leon Mia Noah Olga Paul Rosa
Simon Tina Ulla Victor Wanda Yara Zoe Alice Bob Carol Dan Eve Frank Grace Henry Iris Jack Kate Liam
Mary Nina Oscar Peter Quinn Ruth Sam Tom Uma Vera Will Xenia Yusuf Ahmed Aisha Amir Fatima Hassan
Ivan Natasha Dmitri Olena Akira Yuki Haruto Mei Wei Ling Chen Priya Ravi Anil Sita Kofi Amara Zuri
Carlos Maria Diego Lucia Pedro Ana Joao Ines Marco Giulia Luca Sofia Pierre Marie Louis Camille
Lars Ingrid Sven Astrid Erik Freya Jan Piotr Kasia Zofia Elena Nikos Eleni Mehmet Leyla Alexander
Elizabeth Christopher Katherine Benjamin Charlotte Jonathan Margaret Theodore Beatrice Sebastian
Mira Otto Max Lily Lucy Charlie Daniel Robert James John Michael Sarah Laura Julia Martin Thomas
Paris London Berlin Madrid Rome Vienna Oslo Stockholm Copenhagen Helsinki Dublin Lisbon Athens
Warsaw Prague Budapest Tokyo Osaka Kyoto Seoul Beijing Shanghai Delhi Mumbai Sydney Melbourne
Toronto Vancouver Chicago Boston Seattle Denver Dallas Austin Miami Cairo Nairobi Lagos Lima Quito
Bogota Santiago Havana Munich Hamburg Cologne Zurich Geneva Basel Milan Venice Naples Turin Lyon
Nice Bordeaux Seville Porto Bergen Riga Tallinn Vilnius Kyiv Istanbul Ankara Jakarta Manila Hanoi
Bangkok Amsterdam Rotterdam Brussels Antwerp Edinburgh Glasgow Manchester Oxford Cambridge Houston
France Germany Spain Italy Japan China India Brazil Canada Norway Kenya Egypt Peru Mexico Poland""".split()


UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen""".split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def number_words(number):
    """The number below a hundred in words."""
    if number < 20:
        return UNITS[number]
    return TENS[number // 10] + (f"-{UNITS[number % 10]}" if number % 10 else "")


def third_person(verb):
    """What he, she or it does."""
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh")) else "s")


def with_article(thing):
    """The thing with "a" or "an" before it."""
    return f"{'an' if thing[:1].lower() in 'aeiou' else 'a'} {thing}"
