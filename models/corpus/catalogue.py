"""Tools as real servers have them, and how people speak of what they do.

A line has, with | between: what the tool may be called; what it may be described as; what it does, without
values; the same with values ({0} is the first parameter's); questions that it answers; its parameters, each
as a kind of kinds.TABLE, with a ? if it is optional. It goes on in indented ones. A # starts a domain, whose
tools all differ in what they do.
"""

from dataclasses import dataclass

from .kinds import KINDS, joined
from .source import is_held_out

TOOLS = """
# weather
get weather,weather current,current weather | Current weather conditions for a place;Tells temperature, wind
  and sky right now | get the weather;check the weather;find out how warm it is;tell me the temperature
  outside | check the weather in {0};find out how warm it is in {0};tell me if it rains in {0} | what's the
  weather like in {0};how warm is it in {0};is it raining in {0};do I need an umbrella in {0} | city
  temp_unit?
weather forecast,get forecast,forecast lookup | Weather forecast for the coming days;Predicts the weather of
  a date | look at the forecast;get the weather forecast;see what weather is coming | look up the forecast
  for {0};see what the weather will be in {0} on {1} | what will the weather be in {0} on {1};will it rain
  in {0} on {1};what is the forecast for {0} | city day?
air quality,get air quality,pollution index | Pollution and particle levels at a location;How clean the air
  is | check the air quality;see how clean the air is;look up the smog level | check how clean the air is in
  {0} | how clean is the air in {0};is there smog in {0} | city
sun times,get sunrise,sunrise sunset | When the sun rises and sets | look up sunrise and sunset;find out
  when the sun goes down | find out when the sun sets in {0} on {1} | when does the sun rise in {0};when
  does it get dark in {0} | city day?
tide table,get tides | High and low water at a harbour | look up the tides;see when high water is | see when
  high water is in {0} | when is high tide in {0} | city day?
# mail
send email,email send,compose mail | Sends an e-mail message;Delivers electronic mail to somebody | send an
  email;write a mail;mail something;shoot off an email | send an email to {0} about {1};send {0} a mail
  about {1};email {0} about {1};write to {0} with the subject {1} | | recipient subject message?
search email,find mail,inbox search | Looks through the inbox;Finds messages in the mailbox | search my
  inbox;look through my mail;find an email | look for mails about {0};go through my inbox for {0} | which
  emails mention {0};did I get a mail about {0} | query sender? limit?
read email,get mail,open message | Shows the full text of a message in the mailbox | open an email;show me a
  mail;read out a mail | open the mail {0};show me email {0} | what does the mail {0} say | id
delete email,trash mail,remove message | Throws a message from the mailbox away | delete an email;throw a
  mail away;get rid of a mail | delete the mail {0};get rid of email {0} | | id
forward email,mail forward | Passes a received message on to someone else | forward a mail;pass an email on
  | forward mail {0} to {1};pass the email {0} on to {1} | | id recipient
# chat
send message,post message,chat post | Posts a text to a chat channel;Writes into a channel | post a
  message;write into the chat;drop a line in the chat | post {1} in {0};write {1} into {0};tell everyone in
  {0} that {1};let {0} know that {1};post in {0}: {1} | | channel message
list channels,get channels | All chat rooms of the workspace | list the channels;show the chat rooms | |
  which channels are there;what chat rooms do we have | limit?
direct message,send dm,dm user | Sends a private message to one person | send a direct message;text
  somebody;write a private message | text {0} that {1};let {0} know that {1};tell {0} that {1};tell {0}
  {1};message {0}: {1} | | assignee text
send sms,sms send,text phone | Sends a text message to a phone number | send an SMS;send a text message to a
  phone | send an SMS to {0}: {1};text {1} to the number {0};send {1} to {0} by SMS | | phone text
set status,update presence | Changes what others see as your status | set my status;change my presence | set
  my status to {0};let everyone see the status {0} | | text minutes?
# calendar
create event,add event,calendar add,schedule meeting | Puts an appointment into the calendar;Creates a
  calendar entry | put something in my calendar;create an event;schedule a meeting;set up an appointment |
  put {0} into my calendar on {1} at {2};on {1} at {2} I have {0}, put it down;schedule {0} for {1};set up a
  meeting called {0} on {1} | | title day time? minutes?
list events,get agenda,calendar events | Shows the appointments of a day | show my appointments;look at my
  calendar;list my meetings | show my appointments on {0};see what I have on {0} | what's on my calendar on
  {0};what do I have on {0};am I busy on {0} | day
cancel event,delete event,remove appointment | Takes an appointment out of the calendar | cancel an
  appointment;call off a meeting;drop an event | cancel the appointment {0};call off {0};drop event {0} | |
  id
invite guest,add attendee | Invites somebody to an existing appointment | invite someone;add a
  participant;ask someone along | invite {1} to {0};add {1} to the meeting {0} | | id email
find free slot,free time,check availability | Looks for a free slot in the calendars | find a free slot;see
  when there is time | find a time to meet {0} on {1};see when {0} is free on {1} | when is {0} free on
  {1};when does {0} have time | guest day? minutes?
# reminders
create reminder,set reminder,remind me | Reminds the user of something later;Notifies you at a set moment |
  set a reminder;remind me of something;give me a nudge | remind me to {0} at {1};remind me to {0} on
  {2};remind me to {0};remind me at {1} to {0};remind me {2} to {0};nudge me at {1} to {0};set a reminder to
  {0} at {1} | | errand time? day?
set alarm,alarm create,wake up | Rings at a given time | set an alarm;wake me up;ring me awake | wake me at
  {0};set an alarm for {0} | | time day?
start timer,timer start,countdown | Counts down and rings at the end | start a timer;run a countdown | start
  a timer of {0} minutes;count down {0} minutes;time {0} minutes | | minutes title?
stop timer,cancel timer | Ends a running countdown | stop the timer;end the countdown | stop the timer
  {0};end the countdown {0} | | id
# tasks
create task,add todo,new task,todo add | Adds an item to the to-do list;Creates something to be done | add a
  task;create a to-do;note down something to do | add {0} to my to-do list;I have to {0}, put it on my
  list;put {0} on my to-do list;write {0} on the list | | errand deadline? priority?
complete task,finish todo,mark done | Marks a to-do item as done | tick off a task;mark a task as
  done;finish a task | tick off {0};mark {0} as done;complete task {0} | | id
list tasks,get todos,show tasks | The open items of the to-do list | list my tasks;show what is to be
  done;go through my to-dos | show the {0} tasks | what is left to do;what's on my to-do list;what tasks do
  I have | status? limit?
assign task,task assign | Gives a task to a person | assign a task;hand a task over;give a task to someone |
  assign {0} to {1};give the task {0} to {1};hand {0} over to {1} | | id assignee
# notes
create note,add note,save memo,note create | Writes down a note;Stores a short memo | take a note;write
  something down;jot something down | write down that {0};note that {0};jot down {0};take a note: {0};make a
  note that says {0} | | text tag?
search notes,find note | Searches the notebook | search my notes;look through my notes | look for {0} in my
  notes;find my notes on {0} | what did I write about {0};do I have notes on {0} | query limit?
append note,note append,extend note | Adds a line to a note that exists | add to a note;extend a note | add
  {1} to the note {0};append {1} to note {0};extend note {0} with {1} | | id text
# files
read file,file read,open file,get file contents | Returns the content of a file;Reads text from disk | read
  a file;open a file;show what is in a file | read {0};open {0};open the file {0};show me {0};print the
  contents of {0} | what is in {0};what does {0} contain;what's inside {0} | path
write file,file write,save text | Stores text in a file;Puts content on disk | write a file;save text to
  disk;store some text | write {1} to {0};save {1} into {0};put {1} in the file {0};write into {0}: {1} | |
  path text
delete file,remove file,file delete,rm | Removes a file from disk;Erases a file for good | delete a file;get
  rid of a file;remove a file;erase a file | delete {0};delete the file {0};get rid of {0};remove {0};erase
  {0};throw {0} away | | path flag?
move file,rename file,file move | Moves or renames a file | move a file;rename a file;put a file elsewhere |
  move {0} to {1};rename {0} to {1};put {0} into {1} | | path target_path
copy file,duplicate file,file copy | Makes a copy of a file elsewhere | copy a file;duplicate a file | copy
  {0} to {1};duplicate {0} as {1};make a copy of {0} at {1} | | path target_path
list directory,ls,list files,directory list | The entries of a directory;Shows what is in a folder | list a
  folder;show a directory;see which files there are | list {0};show the files in {0};list everything in {0}
  | what files are in {0};what is in the folder {0};which files are under {0} | folder flag?
search files,grep files,find in files | Finds text in files below a directory | search files;grep for
  something;look for text in files | search for {0} in {1};find {0} under {1};grep for {0} in {1} | which
  files in {1} contain {0};where in {1} is {0} | pattern folder? flag?
create directory,make folder,mkdir | Makes a new directory | make a folder;create a directory | make the
  folder {0};create a directory {0} | | folder
file info,stat file,get metadata | Size, owner and dates of a file | look up the size of a file;check when a
  file was changed | check how big {0} is;see when {0} was changed | how big is {0};when was {0} last
  changed;who owns {0} | path
compress files,zip folder,make archive | Packs a directory into an archive | pack a folder;zip something
  up;make an archive | zip {0} into {1};pack {0} as {1} | | folder target_path
extract archive,unzip,unpack file | Unpacks an archive | unpack an archive;unzip something;extract files |
  unpack {0} to {1};unzip {0} into {1};extract {0} | | path target_folder?
# web
fetch page,http get,web fetch,download url | Downloads a page from the web;Retrieves the content behind a
  URL | fetch a page;download a page;open a website | fetch {0};download {0};load the site {0};get the page
  {0};load {0} | what does {0} say;what's on {0} | url seconds?
web search,search internet,google search | Searches the internet | search the web;look something up
  online;google something | search the web for {0};look up {0} online;google {0} | what can you find about
  {0} online | query limit? language?
shorten link,url shorten | Makes a short link | shorten a link;make a link shorter | shorten {0};make {0}
  shorter | | url
take screenshot,capture page,screenshot | Takes a picture of a web page | take a screenshot;capture a page |
  take a screenshot of {0};capture {0} | what does {0} look like | url width? height?
check site,ping website,uptime check | Tells whether a website is reachable | check if a site is up;test a
  website | check if {0} is up;see whether {0} is online | is {0} up;is {0} down;can {0} be reached | url
# travel
search flights,find flights,flight search | Flights between two airports | find flights;look for a
  flight;search for planes | find flights from {0} to {1} on {2};find a flight to {1} from {0};on {2} I fly
  from {0} to {1}, find me a plane;look for a flight from {0} to {1} | which flights go from {0} to {1} on
  {2};are there flights from {0} to {1} | from_city to_city day?
flight status,get flight,track flight | Delay and gate of a flight | check a flight;see if a plane is on
  time | check on flight {0};see if {0} is on time | is flight {0} delayed;when does {0} land;is {0} on time
  | flight
book hotel,reserve room,hotel booking | Reserves a room in a hotel | book a hotel;reserve a room;get me a
  place to sleep | book a hotel in {0} from {1} for {2} nights;get a room in {0} | | city start_day nights
  guests?
train times,get departures,rail connections | Train connections between stations | look up trains;find a
  train;check the rail connections | find a train from {0} to {1} at {2};look up trains from {0} to {1} |
  when does the train from {0} to {1} leave;how do I get from {0} to {1} by train | from_city to_city time?
get directions,route plan,plan route | The way from one place to another | plan a route;get directions;find
  the way | plan a route from {0} to {1};get directions from {0} to {1} | how do I get from {0} to {1};what
  is the way from {0} to {1} | from_city to_city travel?
travel distance,distance between | How far two places are apart | measure the distance;find out how far it
  is | find out how far it is from {0} to {1} | how far is it from {0} to {1};how far is {0} from {1} |
  from_city to_city
next bus,bus departures,transit departures | Departures at a stop of public transport | check the bus
  times;see when the bus comes | see when the next bus leaves {0} | when is the next bus at {0};when does
  the {1} leave {0} | stop line?
rent car,car rental | Hires a vehicle | rent a car;hire a car | rent a car in {0} from {1} for {2} days | |
  city start_day? days?
call taxi,order cab,ride request | Orders a ride to an address | call a taxi;order a cab;get me a ride | get
  a taxi from {0} to {1};order a cab to {1} from {0} | | from_city to_city time?
# food
find restaurants,restaurant search,places to eat | Places to eat near a location | find a restaurant;look
  for somewhere to eat;find a place for dinner | find {1} restaurants in {0};look for {1} food in {0} |
  where can I eat {1} food in {0};which restaurants are in {0} | city cuisine?
book table,reserve table,restaurant booking | Reserves a table | book a table;reserve seats for dinner |
  book a table at {0} for {1} people;book a table for {1} at {0}, {3} on {2};reserve a table for {1} at {0}
  | | restaurant guests day? time?
find recipe,recipe search,get recipe | Cooking instructions for a dish | find a recipe;look up how to cook
  something | find a recipe for {0};look up how to cook {0} | how do I cook {0};how is {0} made;what goes
  into {0} | dish guests?
nutrition facts,get calories,food info | Calories and nutrients of a food | check the calories;look up
  nutrition facts | look up the calories of {0} | how many calories does {0} have;how healthy is {0} | food
order food,delivery order,order meal | Orders a meal for delivery | order food;have a meal delivered;get a
  delivery | order {1} portions of {0};have {0} delivered | | dish quantity? address?
log meal,track food | Records what was eaten | log a meal;write down what I ate | log {0};record that I ate
  {0} | | food time?
# shopping
search products,product search,find item | Searches the shop's range | search for products;look for
  something to buy | look for {0} under {1};search the shop for {0} | what {0} do you sell;do you have {0} |
  query price? sort?
add to cart,cart add,basket add | Puts a product into the basket | put something in my cart;add to the
  basket | put {1} {0} in my cart;add {0} to the basket | | product quantity?
remove from cart,cart remove | Takes a product out of the basket | take something out of my cart;drop
  something from the basket | take {0} out of my cart;remove {0} from the basket | | product
track package,shipment status,track parcel,where is order | Where a delivery is right now;Follows a parcel |
  track a parcel;check on a delivery;see where a package is | track {0};check where parcel {0} is | where is
  my parcel {0};when does {0} arrive;has {0} shipped | id
place order,checkout,create order | Buys what is in the basket or a given product | place an order;buy
  something | order {1} of {0};buy {1} pieces of {0} | | product quantity? address?
cancel order,order cancel | Calls a purchase off | cancel an order;call off a purchase | cancel the order
  {0};call off order {0} | | order comment?
refund order,issue refund,refund | Gives money back for a purchase | refund an order;give somebody the money
  back | refund {0};refund {1} for order {0};give the money back for {0} | | order amount?
check stock,inventory level,stock level | How many pieces are in the warehouse | check the stock;see how
  many are left | check how many {0} are left;see if {0} is in stock | how many {0} are in stock;is {0}
  available | product
# money
convert currency,currency convert,exchange money,fx convert | Converts an amount between currencies;Exchange
  rates applied to a sum | convert money;change currency;exchange money | convert {0} {1} to {2};change {0}
  {1} into {2};turn {0} {1} into {2} | how much is {0} {1} in {2};what are {0} {1} in {2};what is {0} {1}
  worth in {2} | amount from_currency to_currency
transfer money,send payment,wire transfer,make payment | Moves money to another account | transfer
  money;send money;pay somebody;wire money | send {1} to {0};pay {0} {1};give {0} {1};transfer {1} to
  {0};wire {1} over to {0} | | recipient amount currency? comment?
get balance,account balance,check balance | How much money an account holds | check a balance;see how much
  money there is | check the balance of {0};see how much is on {0} | how much money is on {0};what is the
  balance of {0} | account
list transactions,payment history,bank statement | Past movements of an account | list transactions;show
  past payments | show the last {1} transactions of {0} | what was paid from {0};what happened on my account
  {0} | account limit? start_day?
stock price,get quote,quote lookup | Price of a share at the exchange | get a stock price;look up a
  share;check a quote | look up the price of {0} shares;check the stock {0} | what does a share of {0}
  cost;how is {0} trading;what is {0} at | symbol currency?
create invoice,invoice create,bill customer | Writes a bill for a customer | write an invoice;bill a
  customer | bill {0} {1};write an invoice of {1} for {0};charge {0} {1} | | person amount deadline?
add expense,log expense,record spending | Records money that was spent | log an expense;write down what I
  spent | log {0} for {1};note that I spent {0} on {1} | | amount category day?
calculate tip,tip calculator | Gratuity for a bill | work out the tip;calculate a gratuity | work out {1}
  percent tip on {0} | how much is {1} percent tip on {0} | amount percent guests?
# numbers
calculate,evaluate expression,math eval | Evaluates an arithmetic expression | calculate something;do some
  maths;work out a formula | calculate {0};work out {0};compute {0} | what is {0};how much is {0} |
  expression
convert units,unit convert,unit converter | Converts a measure to another unit | convert units;change a
  measurement | convert {0} {1} to {2};change {0} {1} into {2} | how many {2} are {0} {1};how much is {0}
  {1} in {2} | value_number from_unit to_unit
roll dice,dice roll,throw dice | Random throws of dice | roll dice;throw some dice | roll {0} dice;throw {0}
  dice | | count
random password,generate password,make password | Makes up a safe password | make up a password;generate a
  password | | | count flag?
# language
translate text,text translate,translation | Turns text into another language | translate something;put a
  text into another language | translate {0} into {1};put {0} into {1};say {0} in {1};translate into {1}:
  {0} | how do you say {0} in {1};what is {0} in {1} | text to_language from_language?
detect language,language detect | Tells which language a text is in | detect a language;find out which
  language something is | find out which language {0} is | which language is {0};what language is this: {0}
  | text
check spelling,spell check,proofread | Finds mistakes in a text | check my spelling;proofread a text | check
  the spelling of {0};proofread {0} | is {0} spelled correctly | text language?
define word,dictionary lookup,word definition | Meaning of a word | look up a word;define a word | look up
  {0} in the dictionary;define {0} | what does {0} mean;what is meant by {0} | tag language?
summarize text,make summary,text summary | A shorter version of a document | summarise a document;give me
  the gist of a text | summarise {0};give me the gist of {0} | what is {0} about in short | path limit?
# home
turn on light,light on,lights on | Switches a lamp on | turn on the light;switch the lights on;make it
  bright | turn on the light in the {0};light up the {0};switch on the {0} lights | | room level? colour?
turn off light,light off,lights off | Switches a lamp off | turn off the light;put the lights out;make it
  dark | turn off the light in the {0};put out the {0} lights;switch the {0} lights off | | room
dim light,set brightness,light brightness | Changes how bright a lamp is | dim the light;change the
  brightness | dim the {0} to {1} percent;set the lights in the {0} to {1} percent | | room level
set thermostat,heating set,thermostat | Sets how warm a room shall be | set the heating;change the
  thermostat;make it warmer | set the {0} to {1} degrees;heat the {0} to {1} degrees;make the {0} {1}
  degrees warm | | room degrees
room temperature,read thermometer,sensor temperature | Measured warmth of a room | read the
  thermometer;measure how warm a room is | measure how warm the {0} is | how warm is the {0};what's the
  temperature in the {0} | room temp_unit?
lock door,door lock | Locks a door | lock a door;bolt the door | lock the {0} door;bolt the {0} | | room
unlock door,door unlock | Opens the lock of a door | unlock a door;let somebody in | unlock the {0} door | |
  room seconds?
open blinds,blinds set,move shutters | Moves the blinds of a window | move the blinds;open the shutters |
  open the blinds in the {0} to {1} percent | | room level?
start vacuum,robot clean,vacuum room | Sends the cleaning robot out | start the vacuum;have the floor
  cleaned;hoover | vacuum the {0};hoover the {0};clean the floor of the {0} | | room mode?
camera snapshot,show camera,get picture | Picture of a security camera | show a camera;take a look through
  the camera | show the camera in the {0};take a look at the {0} | what does the {0} camera see | room
set device,switch device,toggle plug | Switches a plugged device | switch a device;operate a plug | switch
  {0} {1};turn {0} {1};turn {1} {0};switch {1} the {0} | | device on
# media
play song,play music,music play | Plays a piece of music | play a song;put some music on | play {0} by
  {1};put {0} on;let me hear {0} by {1} | | song artist? room?
pause playback,music pause,stop music | Halts the music | pause the music;stop playing | pause the music in
  the {0} | | room?
set volume,volume set,change loudness | How loud the speakers are | change the volume;make it louder | set
  the volume to {0};turn the volume to {0} percent | | level room?
add to playlist,playlist add | Appends a song to a playlist | add a song to a playlist | put {0} on {1};add
  {0} to the playlist {1} | | song playlist
create playlist,new playlist | Makes an empty list of songs | make a playlist;start a new list of songs |
  make a playlist called {0} | | playlist genre?
find movie,movie search,film lookup | Information on films | look up a film;find a movie | look up the film
  {0};find the movie {0} | who plays in {0};what is the film {0} about | movie
recommend movie,suggest film | Suggests something to watch | suggest a film;recommend something to watch |
  suggest a {0} film;find me a good {0} movie | what {0} film could I watch | genre limit?
download podcast,podcast episode,play podcast | Loads an episode of a podcast | get a podcast;load an
  episode | get episode {1} of {0};play the podcast {0} | | title count?
record video,start recording | Records with the camera | record a video;start filming | record {0} seconds
  of video;film for {0} seconds | | seconds path?
# images
resize image,image resize,scale picture | Changes the size of a picture | resize a picture;scale an image |
  resize {0} to {1} by {2} pixels;scale {0} to a width of {1} | | path width height?
rotate image,image rotate,turn picture | Turns a picture round | rotate a picture;turn an image | rotate {0}
  by {1} degrees;turn {0} by {1} degrees | | path angle
convert image,image convert,picture format | Stores a picture in another format | convert a picture;change
  an image's format | convert {0} to {1};turn {0} into a {1} | | path format
generate image,draw picture,create image | Draws a picture from a description | draw a picture;paint
  something;make an image | draw {0};paint {0};make a picture of {0} | | topic size?
# code hosting
create issue,open issue,issue create,file bug | Reports a bug in a repository | open an issue;report a
  bug;file a ticket | open an issue titled {1} in {0};report {1} in {0} | | repo title priority?
close issue,issue close,resolve ticket | Marks an issue as resolved | close an issue;resolve a ticket |
  close {0};resolve {0};close issue {0} as done | | ticket comment?
comment issue,add comment,issue comment | Writes below an issue | comment on an issue;reply to a ticket |
  comment {1} on {0};reply {1} to the ticket {0} | | ticket comment
list issues,search issues,get issues | Issues of a repository | list the issues;show the bugs | list the {1}
  issues of {0};show the bugs in {0} | which bugs does {0} have;what issues are {1} in {0} | repo status?
  limit?
create branch,branch create,git branch | Starts a new line of development | make a branch;start a branch |
  create the branch {1} in {0};start the branch {1} in {0} | | repo branch
merge pull request,merge branch,pr merge | Joins a branch into another | merge a branch;join branches |
  merge {0} into {1};bring {0} over into {1} | | branch_a branch_b
list commits,git log,commit history | What was changed lately in a repository | show the history;list the
  last commits | show the last {1} commits of {0} | what changed in {0} lately;who committed to {0} | repo
  limit? branch?
clone repository,git clone,checkout repo | Downloads a repository | clone a repository;check a project out |
  clone {0};clone {0} into {1} | | url target_folder?
run tests,test run,execute tests | Runs the test suite | run the tests;test the project | run the tests in
  {0};test {0} | do the tests in {0} pass | folder flag?
format code,code format,lint file | Tidies source code up | format some code;tidy the source up | format
  {0};tidy {0} up | | path language?
# operations
restart service,service restart,bounce service | Stops a service and starts it again | restart a
  service;bounce a service | restart {0};bounce {0} on {1};restart the service {0};restart {0} on {1} | |
  service host?
stop service,service stop,shut down service | Halts a running service | stop a service;shut a service down |
  stop {0};shut down {0} on {1};take {0} down | | service host?
service status,health check,check health | Whether a service runs well | check a service;see if a service is
  healthy | check on {0};see whether {0} is healthy | is {0} running;how is {0} doing;is {0} healthy |
  service
deploy version,deploy service,release deploy | Brings a version of a service out | deploy a service;roll out
  a release;ship a version | deploy {0} {1} to {2};roll out {1} of {0} to {2};ship {0} {1} | | service
  version environment?
rollback release,undo deploy,revert deploy | Goes back to the version before | roll back a release;undo a
  deployment | roll {0} back to {1};undo the deployment of {0} | | service version? environment?
scale service,set replicas,scale deployment | Changes the number of instances | scale a service;change the
  number of replicas | scale {0} to {1} replicas;run {1} instances of {0} | | service count
get logs,tail logs,read logs,fetch logs | Log lines of a service | show the logs;look at logs;read the log |
  show the last {1} log lines of {0};look at the logs of {0} | what do the logs of {0} say;what did {0} log
  | service limit? severity?
cpu usage,system load,get metrics | Load of a machine | check the load;see how busy a machine is | check the
  load of {0};see how busy {0} is | how busy is {0};how much memory does {0} use | host
disk usage,free space,disk free | How full a disk is | check the disk;see how much space is left | check the
  free space on {0} | how full is {0};how much space is left on {0} | host flag?
run command,shell exec,execute command | Executes a command on a machine | run a command;execute something
  in the shell | run {0} on {1};execute {0} | | text host?
create backup,backup run,make backup | Saves a copy of data | make a backup;back data up | back up {0} to
  {1};make a backup of {0} | | folder target_folder?
block address,firewall block,ban ip | Shuts an address out | block an address;ban somebody from the network
  | block port {1} on {0};close port {1} on {0} | | host port
# data
run query,query database,sql query | Runs a query in a database | query the database;run a query | run {0}
  against the database | | text limit?
count rows,row count,table size | Number of records in a table | count the records;see how many rows there
  are | count the rows of {0} | how many rows does {0} have;how many records are in {0} | table
insert row,add record,create record | Stores a new record | add a record;insert a row | add {1} to the table
  {0};insert {1} into {0} | | table value
delete rows,purge records | Removes records from a table | purge records;delete rows | delete the {1} rows
  from {0} | | table status
export table,data export,dump table | Writes a table into a file | export a table;dump data | export {0} as
  {1};dump {0} to {1} | | table format target_path?
import data,load csv,data import | Fills a table from a file | import data;load a file into a table | import
  {0} into {1};load {0} into the table {1} | | path table
plot chart,draw chart,make graph | Draws a diagram of data | draw a chart;plot data | plot {0} by {1};draw a
  chart of {0} | | table column? format?
set value,store key,kv set,cache put | Stores a value under a key | store a value;set a key;remember a value
  | set {0} to {1};store {1} under {0};remember {1} as {0} | | key value
get value,kv get,cache get | The value that a key has | look a key up;read a value | look up the key
  {0};read the value of {0} | what is stored under {0};what's the value of {0} | key
# people
find contact,contact search,lookup person | Phone and address of people you know | look up a contact;find
  someone's number | look up {0};find the number of {0} | what is {0}'s number;how can I reach {0};what is
  the address of {0} | person
add contact,create contact,save contact | Stores a person in the address book | save a contact;add someone
  to my address book | save {0} with {1};add {0} to my contacts with {1} | | person email phone?
call contact,phone call,dial number | Makes a phone call | call somebody;ring someone up;make a call | call
  {0};ring {0} up;give {0} a ring | | person flag?
create user,add user,register account | Makes an account for a user | create an account;add a user | create
  the user {0} with {1};make an account for {0} with the mail {1} | | username email flag?
delete user,remove account,deactivate user | Takes an account away | delete an account;remove a user;kick a
  user out | delete the user {0};remove the account {0};kick {0} out | | username
reset password,password reset | Lets a user choose a new password | reset a password;get a new password |
  reset the password of {0} | | username
employee info,staff lookup,get employee | Data of a member of staff | look up an employee;find a colleague |
  look up the colleague {0} | which department is {0} in;what does {0} work on | assignee
request vacation,leave request,book holiday | Asks for days off | ask for leave;book a vacation;take days
  off | book vacation from {0} for {1} days;take {1} days off from {0} | | start_day days
# health
log workout,track exercise,add workout | Records physical exercise | log a workout;record my training | log
  {0} for {1} minutes;record {1} minutes of {0} | | category minutes distance?
log weight,record weight,track weight | Stores a body weight | record my weight;log what I weigh | log my
  weight of {0} kg;record {0} kg | | kilos day?
sleep report,get sleep,sleep stats | How long someone slept | check how I slept;show my sleep | show my
  sleep of {0} | how did I sleep on {0};how long did I sleep on {0} | day
book doctor,doctor appointment,see doctor | Makes an appointment with a physician | book a doctor;see a
  physician | book {0} on {1} at {2};see {0} on {1} | | person day time?
medicine reminder,pill reminder,add medication | Reminds of a drug to be taken | remind me of my
  pills;schedule a medicine | remind me to take {0} at {1};schedule {0} at {1} | | medicine time period?
step count,get steps,daily steps | Steps walked on a day | count my steps;see how much I walked | see how
  far I walked on {0} | how many steps did I walk on {0};how much did I walk on {0} | day
# leisure
match result,get score,sports score | Result of a team's game | look up a score;see how a game went | see
  how {0} played on {1};look up the score of {0} | how did {0} play on {1};did {0} win | team day?
league table,standings,team ranking | Ranking of the teams | look up the standings;see the ranking | see
  where {0} stands | where does {0} stand;who leads the league in {0} | country
find events,event search,concerts nearby | Concerts and shows in a town | find a concert;see what is on |
  find {1} concerts in {0};see what is on in {0} on {2} | what's on in {0} on {2};which {1} concerts are in
  {0} | city genre? day?
buy tickets,ticket purchase,get tickets | Buys seats for a show | buy tickets;get seats for a show | buy {1}
  tickets for {0};get {1} seats for {0} | | movie quantity day?
find book,book search,library search | Searches the library's catalogue | look for a book;search the library
  | look for the book {0} by {1};search the library for {0} | who wrote {0};does the library have {0} by {1}
  | book author?
borrow book,loan book,reserve book | Lends a book | borrow a book;put a book on hold | borrow {0} for {1}
  days;put {0} on hold | | book days?
joke,tell joke,get joke | Returns something funny | get a joke;find something funny | get a joke about {0} |
  do you know a joke about {0} | topic
animal fact,pet info,species lookup | Facts about an animal | look up an animal;find out about a species |
  find out about the {0};look up the {0} | what do you know about the {0};how long does a {0} live | animal
water plants,irrigate,start sprinkler | Gives the garden water | water the plants;turn the sprinkler on |
  water the {0} for {1} minutes;run the sprinkler in the {0} for {1} minutes | | room minutes?
# documents
create document,new doc,doc create | Starts a text document | start a document;create a new doc | create a
  document called {0};start a doc titled {0} | | title folder?
share document,share file,grant access | Lets another person see a document | share a document;give someone
  access | share {0} with {1};give {1} access to {0} | | path email
print document,print file,send to printer | Prints on paper | print something;put something on paper | print
  {0} {1} times;print {0} in {2} | | path count? colour?
convert document,export pdf,document convert | Stores a document in another format | convert a
  document;export a document | export {0} as {1};save {0} as a {1};convert {0} to {1} | | path format
scan document,scan page,start scanner | Reads paper into a file | scan a page;digitise some paper | scan {0}
  pages to {1};scan {0} pages | | count target_path?
sign document,request signature | Asks somebody to sign | have something signed;ask for a signature | have
  {0} signed by {1};get {1} to sign {0} | | path email
create spreadsheet,new sheet,sheet create | Starts a table of cells | make a spreadsheet;start a new sheet |
  make a spreadsheet called {0} | | title limit?
# news and knowledge
get news,news headlines,latest news | Headlines of the day | get the news;see the headlines;read the news |
  get the news about {0};show {1} headlines on {0} | what's new about {0};what do the papers say about {0} |
  topic limit? country?
wiki lookup,encyclopedia article,knowledge search | An article of an encyclopedia | look up an article;read
  about something | read up on {0};look up the article on {0} | what is written about {0} in the
  encyclopedia | topic language?
world time,get time,current time,time in city | Clock time at a place | get the time;see what time it is |
  tell me the time in {0};see how late it is in {0} | what time is it in {0};how late is it in {0} | city
public holidays,holiday list,bank holidays | Days off in a country | list the holidays;see which days are
  off | list the public holidays in {0} | which days are off in {0};when are the holidays in {0} | country
population,country info,country facts | Facts and figures of a country | look up a country;find out how many
  people live somewhere | look up the population of {0} | how many people live in {0};what is the capital of
  {0} | country
# support
create ticket,open ticket,support request | Asks the help desk for help | open a support ticket;ask support
  for help | open a ticket about {0};tell support about {0} | | subject priority? email?
ticket status,support status,check ticket | How far the help desk is | check a support ticket;see how far
  support is | check on the ticket {0} | what's up with ticket {0};is {0} solved | ticket
escalate ticket,raise ticket | Gives a case to a higher level | escalate a case;raise a ticket | escalate
  {0};raise {0} to {1} | | ticket priority?
rate service,leave review,submit feedback | Stores the opinion of a customer | leave a review;give feedback
  | leave the review {1} for {0};write about {0}: {1} | | restaurant comment
subscribe newsletter,newsletter signup,mailing list join | Puts an address on a mailing list | subscribe
  somebody;sign up for the newsletter | sign {0} up for the newsletter;subscribe {0} | | email period?
unsubscribe,newsletter cancel,mailing list leave | Takes an address off a mailing list | unsubscribe
  somebody;take an address off the list | unsubscribe {0};take {0} off the mailing list | | email
# machines
move robot,robot drive,drive rover | Drives a robot forward | drive the robot;move the rover | drive the
  robot {0} metres;move {0} metres at speed {1} | | value_number speed?
set fan,fan speed,ventilation | Speed of a ventilator | change the fan;ventilate a room | run the fan in the
  {0} at speed {1};set the {0} fan to {1} | | room speed
start pump,pump on,fill tank | Pumps water | start a pump;fill a tank | run the pump {0} for {1} minutes | |
  device minutes
read sensor,sensor value,get reading | The latest reading of a sensor | read a sensor;get a reading | read
  the sensor {0};get the reading of {0} | what does the sensor {0} say;what is the reading of {0} | key
calibrate,calibrate device,zero scale | Adjusts an instrument | calibrate something;adjust an instrument |
  calibrate {0};adjust {0} to {1} | | device value_number?
charge car,start charging,ev charge | Charges an electric vehicle | charge the car;fill the battery up |
  charge the car to {0} percent by {1} | | percent time?
print label,label print | Prints a sticker | print a label;make a sticker | print {1} labels with {0} | |
  title quantity?
"""


@dataclass(frozen=True)
class Entry:
    """What the lines say. parameters: (kind, required)."""

    domain: str
    names: tuple
    descriptions: tuple
    deeds: tuple
    sayings: tuple
    questions: tuple
    parameters: tuple


def split(field, sign=";"):
    return tuple(part.strip() for part in field.split(sign) if part.strip())


def entries():
    domain, found = "", []
    for line in joined(TOOLS):
        if line.startswith("#"):
            domain = line[2:]
            continue
        names, descriptions, deeds, sayings, questions, parameters = line.split("|")
        found.append(Entry(domain, split(names, ","), split(descriptions), split(deeds), split(sayings),
                           split(questions), tuple((KINDS[each.rstrip("?")], not each.endswith("?"))
                                                   for each in parameters.split())))
    return found


ENTRIES = entries()
SIDES = (tuple(entry for entry in ENTRIES if not is_held_out("entry", entry.names[0])),
         tuple(entry for entry in ENTRIES if is_held_out("entry", entry.names[0])))
