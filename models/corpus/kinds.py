"""What kinds of values the arguments of realistic tools have: what parameters of a kind are called,
what their values look like, and how people hang them to a sentence."""

from dataclasses import dataclass

from .basics import DAYS
from .drills import identifier
from .value_words import (BETWEEN, CITIES, COLOURS, CUISINES, CURRENCIES, DISHES, ERRANDS, EXTENSIONS, GENRES,
                          LANGUAGES, MEASURES, MONTHS, QUOTES, RELATIVE_DAYS, ROOMS, SEARCHES, SENTENCES,
                          SERVICES, TOP_LEVEL)
from .words import ADJECTIVES, ANIMALS, FOODS, NOUNS, number_words

BOOLEANS = ((True, ("on", "yes", "true", "enabled", "yes")),
            (False, ("off", "no", "false", "disabled", "no")))


def slug(source):
    return source.pick(NOUNS) if source.chance(0.5) else source.invented()


def city(source):
    return source.pick(CITIES) if source.chance(0.15) else source.name()


def person(source):
    if source.chance(0.25):
        return f"{source.name()} {source.name()}"
    if source.chance(0.06):
        return source.any(("Dr. ", "Mr. ", "Mrs. ", "Aunt ", "Professor ")) + source.name()
    return source.name()


def email(source):
    local = source.name().lower() if source.chance(0.4) else slug(source)
    if source.chance(0.3):
        local += source.any((".", "_", "-")) + slug(source)
    return f"{local}@{slug(source)}.{source.any(TOP_LEVEL)}"


def recipient(source):
    return email(source) if source.chance(0.5) else person(source)


def day(source):
    style = source.number(0, 9)
    if style < 3:
        return source.any(DAYS)
    if style < 5:
        return source.pick(RELATIVE_DAYS)
    number, month = source.number(1, 28), source.any(MONTHS)
    if style == 5:
        return f"{number} {month}"
    if style == 6:
        return f"{month} {number}"
    if style == 7:
        return f"{month} {number}, {source.number(2023, 2032)}" if source.chance(0.3) else f"{number} {month}"
    return f"{source.number(2019, 2034)}-{source.number(1, 12):02}-{number:02}"


def time(source):
    style = source.number(0, 5)
    if style == 0:
        return f"{source.number(1, 12)} {source.any(('pm', 'am'))}"
    if style == 1:
        return f"{source.number(1, 12)}{source.any(('pm', 'am'))}"
    if style == 2 and source.chance(0.5):
        return f"{source.number(1, 12)}:{source.any((15, 30, 45))} {source.any(('pm', 'am'))}"
    if style == 2:
        return source.any(("noon", "midnight", "half past seven", "6 o'clock", "a quarter to nine"))
    return f"{source.number(0, 23)}:{source.any((0, 5, 10, 15, 20, 30, 40, 45, 50)):02}"


def file_name(source):
    name = slug(source)
    if source.chance(0.4):
        name += source.any(("_", "-")) + (slug(source) if source.chance(0.7) else str(source.number(1, 2030)))
    style = source.number(0, 19)
    if style == 0:
        name = name.upper()
    elif style < 4:
        name = name.capitalize()
    elif style == 4:
        name = f"{source.any(('IMG', 'DSC', 'Scan', 'report'))}_{source.number(1, 9999)}"
    return f"{name}.{source.any(EXTENSIONS)}"


def folder(source):
    parts = [slug(source) for _ in range(source.number(1, 3))]
    return source.any(("/", "/", "~/", "./", "", "C:/")) + "/".join(parts) + source.any(("", "", "/"))


def path(source):
    if source.chance(0.35):
        return file_name(source)
    return folder(source).rstrip("/") + "/" + file_name(source)


def url(source):
    scheme = source.any(("https://", "https://", "http://", "https://www."))
    address = f"{scheme}{slug(source)}.{source.any(TOP_LEVEL)}"
    if source.chance(0.6):
        address += "/" + source.any((slug(source), file_name(source),
                                     f"{slug(source)}/{source.number(1, 999)}"))
    return address


def code(source):
    style = source.number(0, 8)
    if style > 6:
        return str(source.number(10, 99999))
    letters = source.invented()[:3].upper()
    if style < 2:
        return f"{letters}-{source.number(1, 99999)}"
    if style == 2:
        return f"{letters}{source.number(10, 9999)}"
    if style == 3:
        return f"{slug(source)}-{source.number(1, 99)}"
    if style == 4:
        return f"{source.number(0, 0xffffff):06x}{source.invented()[:1]}"
    if style == 5:
        return f"#{source.number(1, 9999)}"
    return f"{slug(source)}_{source.number(1, 999)}"


def phrase(source):
    """A few words of content."""
    words = [source.invented() if source.chance(0.25)
             else source.pick(NOUNS + ADJECTIVES if index == 0 else NOUNS)
             for index in range(source.any((1, 1, 2, 2, 2, 3)))]
    return " ".join(words)


def search(source):
    """What people search for."""
    if source.chance(0.6):
        return phrase(source)
    return filled_in(source, source.pick(SEARCHES))


def title(source):
    text = phrase(source)
    style = source.number(0, 5)
    if style == 5:
        return f"{source.name()}'s" + source.any(("", f" {source.pick(NOUNS).capitalize()}"))
    if style < 2:
        return " ".join(word.capitalize() for word in text.split())
    if style == 2:
        return "The " + " ".join(word.capitalize() for word in text.split())
    if style == 3:
        return text.capitalize()
    return f"{text.capitalize()} {source.any(('with', 'for', 'by'))} {source.name()}"


def filled_in(source, template):
    """The template with words for its marks."""
    makers = {"{N}": source.name, "{n}": lambda: source.pick(NOUNS), "{a}": lambda: source.pick(ADJECTIVES),
              "{f}": lambda: source.any(FOODS), "{m}": lambda: source.any(ANIMALS),
              "{t}": lambda: time(source),
              "{d}": lambda: str(source.number(2, 90)), "{D}": lambda: source.any(DAYS)}
    pieces = template.split("{")
    return pieces[0] + "".join(makers["{" + piece[:2]]() + piece[2:] for piece in pieces[1:])


def sentence(source):
    template = source.pick(SENTENCES)
    text = filled_in(source, template)
    if source.chance(0.35) and not template.startswith(("{N}", "I")):
        return text[:1].lower() + text[1:]
    return text if text[-1] in "!?" or source.chance(0.8) else text + "."


def errand(source):
    return filled_in(source, source.pick(ERRANDS))


def phone(source):
    return f"+{source.number(1, 99)} {source.number(100, 999)} {source.number(1000, 99999)}" \
        if source.chance(0.6) else f"0{source.number(100, 999)}-{source.number(1000, 99999)}"


def handle(source):
    return source.any(("", "", "@")) + slug(source) + source.any(("", "", str(source.number(1, 99))))


def channel(source):
    return source.any(("#", "#", "")) + source.any((slug(source), f"{slug(source)}-{slug(source)}"))


def branch(source):
    return source.any((slug(source), f"feature/{slug(source)}", f"fix-{slug(source)}",
                       f"{slug(source)}-{slug(source)}",
                       f"release/{source.number(1, 9)}.{source.number(0, 20)}"))


def repository(source):
    return f"{slug(source)}/{slug(source)}" if source.chance(0.5) else slug(source)


def version(source):
    return source.any(("", "v")) + ".".join(str(source.number(0, 20)) for _ in range(source.any((2, 3, 3))))


def product(source):
    return phrase(source) if source.chance(0.8) else code(source)


def symbol(source):
    return source.invented()[:4].upper()


def value_name(source):
    """A name for anything: an identifier, mostly."""
    return identifier(source)


def currency_value(source):
    return source.pick(CURRENCIES)


def colour(source):
    return f"#{source.number(0, 0xffffff):06x}" if source.chance(0.12) else source.pick(COLOURS)


def service(source):
    style = source.number(0, 9)
    if style == 0:
        return ".".join(str(source.number(1, 254)) for _ in range(4))
    if style < 4:
        return f"{slug(source)}{source.any(('', '-api', '-service', '-01', '.local', '_db'))}"
    return source.pick(SERVICES)


def of(items):
    return lambda source: source.pick(items)


def whole(low, high):
    return lambda source: source.number(low, high)


def plain(number):
    """The number without a fraction of nothing."""
    return int(number) if number == int(number) else number


def amount(source):
    if source.chance(0.5):
        return source.number(2, 990)
    return plain(round(source.number(100, 99999) / source.any((10, 100)), 2))


def decimal(source):
    return source.number(1, 99) if source.chance(0.4) else plain(source.number(10, 999) / 10)


def degrees(source):
    return source.number(5, 95) if source.chance(0.7) else plain(source.number(30, 500) / 2)


# kind | type | value | names of parameters | how a value hangs to a sentence
TABLE = """
city | string | city | city,location,place,town,city_name | in {v};for {v};in {v}
from_city | string | city | from,origin,from_city,departure,start | from {v};starting in {v};out of {v}
to_city | string | city | to,destination,to_city,target,arrival | to {v};towards {v};going to {v}
country | string | city | country,nation,region | in {v};for {v}
address | string | city | address,location,street | at {v};to {v}
day | string | day | date,day,when,on_date | on {v};for {v}
deadline | string | day | due,due_date,deadline,until | by {v};until {v};due {v}
start_day | string | day | start_date,from_date,check_in,since | from {v};starting {v};since {v}
time | string | time | time,at,start_time,hour | at {v};for {v};at {v}
person | string | person | name,person,who,contact | for {v};with {v}
author | string | person | author,by,writer,created_by | by {v};written by {v};from {v}
sender | string | recipient | from,sender,from_address | from {v};sent by {v}
recipient | string | recipient | to,recipient,address,receiver | to {v};for {v}
email | string | email | email,email_address,mail,address | at {v};with the address {v};using {v}
assignee | string | person | assignee,owner,user,assigned_to | to {v};for {v}
guest | string | person | attendee,guest,participant,with | with {v};together with {v}
phone | string | phone | phone,number,phone_number | at {v};under {v}
username | string | handle | username,user,login,account,user_id | for {v};of {v};for the user {v}
title | string | title | title,name,heading | called {v};titled {v};with the title {v};named {v}
subject | string | title | subject,topic,title | about {v};with the subject {v};with {v} as the subject
text | string | sentence | text,content,body,input | saying {v};with the text {v};that reads {v}
message | string | sentence | message,text,body,content | saying {v};that says {v};with the message {v}
comment | string | sentence | comment,note,remark,description | with the comment {v};noting {v};and add the
  note {v}
errand | string | errand | text,task,title,what,reminder,todo,item | to {v};saying {v};about {v}
query | string | search | query,q,search,keyword,term,text | for {v};about {v};on {v}
topic | string | phrase | topic,subject,theme,about | about {v};on {v};about the topic {v}
path | string | path | path,file,file_path,filename | at {v};in {v};from {v}
target_path | string | path | destination,target,to,output,new_path | to {v};into {v};as {v}
folder | string | folder | path,folder,directory,dir | in {v};under {v};inside {v}
target_folder | string | folder | destination,target,target_dir,to | to {v};into {v};over to {v}
pattern | string | phrase | pattern,search,regex,needle,text | matching {v};for {v};containing {v}
url | string | url | url,link,address,page,uri | at {v};from {v};under {v}
id | string | code | id,identifier,ref,number,code | with the id {v};number {v};with the number {v}
order | string | code | order_id,order,order_number | for the order {v};with the order number {v}
ticket | string | code | ticket_id,issue,ticket,issue_key | for the ticket {v};in {v}
amount | number | amount | amount,value,sum,total | of {v};over {v};worth {v}
price | number | amount | price,cost,max_price,budget | for {v};at a price of {v};under {v};under ${v}
currency | string | currency | currency,unit,in_currency | in {v};shown in {v}
from_currency | string | currency | from,from_currency,source,base | from {v};out of {v}
to_currency | string | currency | to,to_currency,target,quote | to {v};into {v};in {v}
percent | integer | percent | percent,percentage,rate,level | at {v} percent;to {v} percent;with {v} %;to
  {v}%;at {v}%
limit | integer | small | limit,max_results,count,top,n,max | with at most {v} results;limited to {v};{v} at
  most
count | integer | small | count,number,amount,times,n | {v} times;{v} of them
quantity | integer | small | quantity,count,amount,qty,pieces | {v} pieces;{v} of them;in a quantity of {v}
guests | integer | few | guests,people,persons,party_size,seats | for {v} people;for {v} guests;for a party
  of {v}
nights | integer | few | nights,duration,stay | for {v} nights;staying {v} nights
minutes | integer | minutes | minutes,duration,duration_minutes,length | for {v} minutes;lasting {v} minutes
hours | integer | few | hours,duration,hours_ahead | for {v} hours;over {v} hours
days | integer | few | days,period,days_ahead,last_days | for {v} days;over {v} days
seconds | integer | minutes | seconds,timeout,delay,interval | for {v} seconds;every {v} seconds
room | string | room | room,area,zone,location | in the {v};for the {v};in the {v}
device | string | phrase | device,device_name,name,appliance | on the {v};for the {v}
degrees | number | degrees | temperature,degrees,target_temperature,value | to {v} degrees;at {v} degrees
level | integer | percent | level,brightness,volume,value,intensity | to {v};at level {v};at {v} percent;to
  {v}%
speed | integer | small | speed,level,rate,gear | at speed {v};with speed {v}
language | string | language | language,lang,locale | in {v};for {v}
from_language | string | language | source_language,from,from_lang | from {v};out of {v}
to_language | string | language | target_language,to,to_lang,language | into {v};to {v}
tag | string | slug | tag,label,category | tagged {v};with the tag {v};under {v}
category | string | slug | category,type,group,kind,section | in the category {v};under {v};as {v}
channel | string | channel | channel,room,channel_name | in {v};on {v};to {v}
branch | string | branch | branch,ref,branch_name,base | on {v};on the branch {v};from {v}
repo | string | repository | repo,repository,project,repo_name | in {v};of {v};for the repository {v}
song | string | title | song,title,track,name | called {v};namely {v}
artist | string | person | artist,by,singer,band | by {v};from {v}
playlist | string | title | playlist,list,playlist_name | on the playlist {v};to the playlist {v}
genre | string | genre | genre,style,category,mood | of the genre {v};in the {v} genre
list | string | slug | list,list_name,collection,project | on the {v} list;to the list {v}
product | string | product | product,item,article,product_name | of {v};for {v}
colour | string | colour | color,colour,paint | in {v};coloured {v}
table | string | slug | table,collection,table_name,dataset | in the table {v};from {v}
column | string | slug | column,field,attribute,key | by {v};over the column {v}
key | string | slug | key,name,setting,option,variable | under {v};for {v};of {v}
value | string | name | value,content,data,new_value | with the value {v};as {v};to {v}
service | string | service | service,app,service_name,unit | for {v};of {v}
host | string | service | host,server,machine,node,hostname | on {v};at {v}
port | integer | port | port,port_number | on port {v};at port {v}
version | string | version | version,tag,release | in version {v};at {v}
restaurant | string | title | restaurant,venue,place,name | at {v}
cuisine | string | cuisine | cuisine,food,kitchen,type | with {v} food;serving {v} food
dish | string | dish | dish,recipe,meal,name | for {v}
food | string | dish | food,item,meal | of {v};for {v}
medicine | string | slug | medicine,drug,medication,name | of {v};called {v}
kilos | number | degrees | weight,kg,weight_kg,kilos | of {v} kg;weighing {v} kg
distance | number | decimal | distance,km,radius,distance_km | within {v} km;of {v} km
from_unit | string | measure | from_unit,from,unit | from {v}
to_unit | string | measure | to_unit,to,target_unit | to {v};into {v};in {v}
value_number | number | decimal | value,number,amount,quantity | of {v}
symbol | string | symbol | symbol,ticker,stock | for {v};of {v}
flight | string | code | flight,flight_number,number | for the flight {v};on flight {v}
stop | string | city | stop,station,from_stop | at {v};from {v}
line | string | code | line,route,line_number | of line {v};on line {v}
account | string | slug | account,account_name,wallet | of the account {v};on the account {v};in {v}
branch_a | string | branch | source,head,from_branch | from {v}
branch_b | string | branch | target,base,into | into {v}
width | integer | pixels | width,w,pixels | {v} pixels wide;with a width of {v}
height | integer | pixels | height,h | {v} pixels high;with a height of {v}
angle | integer | pixels | angle,degrees,rotation | by {v} degrees
expression | string | sum | expression,formula,input | for {v}
animal | string | animal | animal,species,pet,kind | for the {v};of the {v}
book | string | title | book,title,book_title | of {v};for {v}
movie | string | title | movie,film,title | of {v};for {v}
team | string | city | team,club,team_name | of {v};for {v}
temp_unit | enum | celsius fahrenheit kelvin | unit,units,scale | in {v};shown in {v}
priority | enum | low normal high urgent medium critical | priority,importance,urgency | with {v}
  priority;with priority {v}
status | enum | open closed done pending active blocked archived | status,state | with the status {v};that
  are {v}
size | enum | small medium large tiny huge | size,format | in {v};in size {v}
format | enum | pdf csv json xml png html txt | format,output_format,type | as {v};in {v} format
sort | enum | name date size price rating age | sort,sort_by,order_by | sorted by {v};ordered by {v}
direction | enum | ascending descending | order,direction,sort_order | in {v} order;{v}
mode | enum | fast slow quiet eco auto manual turbo | mode,profile,setting | in {v} mode;set to {v}
severity | enum | info warning error debug critical | level,severity,log_level | at level {v};with the level
  {v}
environment | enum | staging production testing development preview | environment,env,stage,target | to
  {v};in {v};on {v}
period | enum | daily weekly monthly yearly hourly | period,frequency,interval,repeat | {v};on a {v} basis
travel | enum | driving walking cycling transit | mode,by,travel_mode | by {v};for {v}
side | enum | left right top bottom centre | position,side,align | on the {v};at the {v}
on | boolean | state | on,enabled,active,state,power,value | set to {v}
flag | boolean | state |
  recursive,urgent,public,notify,overwrite,verbose,dry_run,force,html,silent,metric,return_trip
  | -
"""
MAKERS = {
    "city": city, "person": person, "recipient": recipient, "email": email, "day": day, "time": time,
    "handle": handle, "title": title, "sentence": sentence, "phrase": phrase, "path": path, "folder": folder,
    "url": url, "code": code, "amount": amount, "phone": phone, "channel": channel, "branch": branch,
    "repository": repository, "version": version, "product": product, "symbol": symbol, "name": value_name,
    "slug": slug, "decimal": decimal, "errand": errand, "search": search, "currency": currency_value,
    "language": of(LANGUAGES),
    "measure": of(MEASURES), "room": of(ROOMS), "dish": of(DISHES), "cuisine": of(CUISINES),
    "genre": of(GENRES), "colour": colour, "service": service, "animal": lambda source: source.any(ANIMALS),
    "small": whole(2, 60), "few": whole(2, 20), "minutes": whole(2, 95), "percent": whole(2, 100),
    "pixels": whole(10, 2000), "port": whole(80, 65000),
    "degrees": degrees,
    "sum": lambda source: f"{source.number(2, 99)} {source.any('+-*/')} {source.number(2, 99)}",
}


@dataclass(frozen=True)
class Kind:
    """A kind of value. type: of JSON, or "enum"."""

    name: str
    type: str
    make: object
    keys: tuple
    hanging: tuple

    def long(self, value):
        """Whether the value has to be quoted unless it ends the request."""
        return self.make is sentence or self.make is search and not set(BETWEEN).isdisjoint(value.split())


def joined(table):
    """The lines of the table, each with the indented ones after it."""
    return table.strip().replace("\n  ", " ").splitlines()


def parsed(line):
    name, kind, value, keys, hanging = (field.strip() for field in line.split("|"))
    make = tuple(value.split()) if kind == "enum" else None if kind == "boolean" else MAKERS[value]
    return Kind(name, kind, make, tuple(keys.split(",")), tuple(hanging.split(";")))


KINDS = {kind.name: kind for kind in map(parsed, joined(TABLE))}
ORDINARY = tuple(kind for kind in KINDS.values() if kind.name not in ("on", "expression"))


def type_of(source, kind):
    """The type of a parameter of this kind, as Tool wants it."""
    if kind.make is code and source.chance(0.2):
        return "integer"
    if kind.type != "enum":
        return kind.type
    choices = source.random.sample(kind.make, min(len(kind.make), source.any((2, 3, 3, 4))))
    return "|".join(choices)


def whole_number(kind, json_type):
    """Whether the value is an identifier that is a number."""
    return kind.make is code and json_type == "integer"


def value_of(source, kind, json_type):
    if kind.type == "enum":
        return source.any(json_type.split("|"))
    if whole_number(kind, json_type):
        return source.number(1, 10 ** source.number(2, 5))
    return source.chance(0.5) if kind.type == "boolean" else kind.make(source)


def spoken(source, kind, value, quote=0.2, bare=False):
    """The value as somebody says it. quote: how often it is in quotes. bare: whether a sentence may do
    without."""
    if kind.type == "boolean":
        words = BOOLEANS[not value][1]
        return words[0] if kind.name == "on" else source.any(words)
    if not isinstance(value, str):
        if isinstance(value, int) and 0 <= value < 100 and kind.make is not code and source.chance(0.25):
            return "a dozen" if value == 12 and source.chance(0.5) else number_words(value)
        return str(value)
    if kind.type == "enum":
        style = source.number(0, 9)
        return value.upper() if style == 0 or style < 4 and kind.name == "format" else \
            value.capitalize() if style == 9 else value
    if kind.long(value) and not bare or source.chance(quote * (2 if " " in value else 1)):
        left, right = QUOTES[0] if "'" in value or source.chance(0.7) else source.any(QUOTES)
        return left + value + right
    return value


def hung(source, kind, value, said):
    """How the value hangs to a sentence, with a space in front."""
    if kind.type == "boolean":
        return None
    if isinstance(value, str) and value[:1].islower() and kind.make is day:
        return " " + (said if source.chance(0.7)
                      or kind.name == "day" else f"{kind.hanging[0].format(v=said)}")
    return " " + source.any(kind.hanging).format(v=said)
