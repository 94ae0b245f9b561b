"""Families of requests to count and to add. u: counts up from {a} to {b}; d: down from {a} to {b}; D: down
from {a} to 1; t: from 1 to {b}."""

from .families import of_lists

COUNTING = of_lists("counting", """
# count
u: count from {a} to {b}
u: count up from {a} to {b}
u: count {a} to {b}
d: count down from {a} to {b}
d: count from {a} down to {b}
D: count down from {a}
t: count to {b}
t: count up to {b}
# can you
u: can you count from {a} to {b} for me?
u: could you count up from {a} to {b}?
d: can you count down from {a} to {b}?
D: could you count down from {a} for me?
t: can you count to {b}?
t: are you able to count up to {b}?
# list numbers
u: list the numbers from {a} to {b}
u: list all numbers {a} to {b}
u: list every number from {a} through {b}
d: list the numbers from {a} down to {b}
D: list the numbers from {a} down to one
t: list the first {b} numbers
t: list the numbers up to {b}
# give me
u: give me the numbers {a} to {b}
u: give me all the numbers from {a} up to {b}
d: give me the numbers from {a} back to {b}
D: give me a countdown from {a}
t: give me the numbers up to {b}
t: give me every number from one to {b}
# between
u: which numbers are between {a} and {b}, both included?
u: the numbers between {a} and {b}
u: say all numbers between {a} and {b}
d: the numbers between {a} and {b}, going down
d: all between {a} and {b}, backwards
t: the numbers between 1 and {b}
# start and stop
u: start at {a} and stop at {b}
u: start counting at {a} and stop at {b}
u: start with {a}, end with {b}
d: start at {a} and go down until {b}
d: start from {a} and count backwards until you reach {b}
D: start at {a} and go down to one
t: start at one and stop at {b}
# begin
u: begin with {a} and keep going until {b}
u: beginning at {a}, count to {b}
u: begin at {a} and finish at {b}, counting
d: begin at {a} and descend to {b}
D: begin at {a} and descend to one
t: begin with one and keep going until {b}
# backwards
d: backwards from {a} to {b}, please
d: count backwards from {a} to {b}
D: count backwards from {a}
D: backwards from {a}, please
u: forwards from {a} to {b}, please
t: forwards from one to {b}
# reverse
d: in reverse: {a} to {b}
d: the numbers {a} to {b} in reverse order
D: in reverse order from {a} to one
u: in order: {a} to {b}
u: in rising order, {a} up to {b}
t: in order, one to {b}
# rocket
D: the rocket starts, count down from {a}!
D: rocket countdown from {a}
d: for the launch, count from {a} down to {b}
d: launch countdown: {a} to {b}
u: the climb goes from floor {a} up to {b}, count the floors
t: count the steps up to {b}
# child
u: my son wants to hear the numbers from {a} to {b}
u: teach my daughter to count from {a} to {b}
d: my daughter wants to hear the numbers from {a} down to {b}
D: show my kid how to count down from {a}
t: show my kid how to count to {b}
t: my son wants to hear the numbers up to {b}
# hide and seek
t: we play hide and seek, so count to {b}
t: close your eyes and count to {b}
u: we play a game, so go on counting from {a} until {b}
D: we wait for midnight, so count down from {a}
d: the bell rings soon, go from {a} down to {b}
# want
u: I want to see the numbers {a} through {b}
u: I want {a} up to {b}
d: I want to see {a} down to {b}
D: I want to see a countdown that begins at {a}
t: I want to see one through {b}
# recite
u: recite the numbers from {a} up to {b}
u: recite {a} to {b}
d: recite the numbers from {a} back to {b}
D: recite the numbers from {a} back to one
t: recite the numbers one to {b}
# write
u: write down the numbers from {a} to {b}
u: write {a} to {b} with commas
d: write down the numbers from {a} down to {b}
D: write a countdown from {a} to one
t: write out the numbers up to {b}
# bare range
u: {a} to {b}
u: from {a} to {b}
u: {a} ... {b}
d: from {a} down to {b}
d: {a} down to {b}
D: {a} down to one
t: 1 to {b}
t: up to {b}
# sequence
u: what is the sequence from {a} to {b}?
u: which numbers come from {a} up to {b}?
d: what is the sequence from {a} down to {b}?
D: what is the sequence going down from {a} to one?
t: what is the sequence from one to {b}?
# bounds
u: lowest {a}, highest {b}: count
u: first number {a}, last number {b}, go
d: first number {a}, last number {b}, downwards
D: first number {a}, last number one, downwards
t: last number {b}, first number one, go
# try
u: let me hear you count from {a} to {b}
u: let's count together, {a} to {b}
d: let's count down together, {a} to {b}
D: let's count down together from {a}
t: let me hear you count up to {b}
# show
u: show {a} to {b}
u: print the numbers {a} through {b}
d: print the numbers {a} through {b}, descending
D: show a countdown starting at {a}
t: print the numbers one through {b}
# need
u: I need all whole numbers from {a} to {b}
u: I need to know how one counts from {a} to {b}
d: I need the whole numbers from {a} down to {b}
D: I need a countdown from {a} to one
t: I need all whole numbers up to {b}
# after
u: say {a} and all that follow up to {b}
u: say {a}, then the next ones, till you are at {b}
d: say {a} and all that come before it, down to {b}
D: say {a} and all that come before it, down to one
t: say one and all that follow up to {b}
""", held_out=("start and stop", "child", "need", "sequence"))

ADDING = of_lists("adding", """
# what is
what is {a} plus {b}?
what is {a} + {b}?
what's {a} + {b}?
what's {a} plus {b}?
what is {a}+{b}?
# bare
{a} + {b}
{a}+{b}
{a} plus {b}
{a} + {b} = ?
{a}+{b}=
# add
add {a} and {b}
add {a} to {b}
add together {a} and {b}
add up {a} and {b}
add the numbers {a} and {b}
# how much
how much is {a} plus {b}?
how much is {a} and {b}?
how much do {a} and {b} make?
how much are {a} and {b}?
# sum
the sum of {a} and {b}?
what is the sum of {a} and {b}?
give me the sum of {a} and {b}
sum up {a} and {b}
sum {a} and {b}
# compute
compute {a} + {b}
compute {a} plus {b}
compute the sum of {a} and {b}
# calculate
calculate {a} + {b}
calculate {a} plus {b}
calculate the total of {a} and {b}
calculate for me: {a} + {b}
# can you
can you add {a} and {b}?
could you work out {a} + {b}?
can you tell me {a} plus {b}?
would you add {a} and {b} for me?
# get
what do you get when you add {a} and {b}?
what do I get if I add {a} to {b}?
what comes out if you add {a} and {b}?
what comes when you put {b} on top of {a}?
# total
what is the total of {a} and {b}?
{a} and {b} in total?
total of {a} and {b}, please
in total, how many are {a} and {b}?
# together
{a} and {b} together?
{a} together with {b}?
together, {a} and {b} make what?
take {a} and {b} together
how many are {a} and {b} together?
# equals
{a} plus {b} equals?
{a} + {b} equals what?
{a} plus {b} makes what?
{a} and {b} makes?
# result
what is the result of {a} + {b}?
I need the result of {a} plus {b}
tell me the result of {a} + {b}
# apples
I have {a} apples and get {b} more. How many do I have?
I had {a} apples, then I picked {b} more. How many are that?
there are {a} apples in one bowl and {b} in another, how many in all?
# shop
one costs {a} euros, the other {b} euros, what do both cost?
I pay {a} for bread and {b} for cheese, how much is that?
a pen for {a} and a book for {b}, what do I pay?
# birds
{a} birds sit on a roof and {b} more arrive. How many birds are there?
there were {a} ducks on the pond, {b} came along, how many now?
{a} cats meet {b} other cats; how many cats is that?
# people
{a} people are on the bus and {b} get on. How many are on it now?
{a} guests are here and {b} are still to come, how many will we be?
{a} boys and {b} girls make how many children?
# increase
increase {a} by {b}
what is {a} increased by {b}?
raise {a} by {b}, what is it?
# more than
which number is {b} more than {a}?
what is {b} more than {a}?
{a} and then {b} more is what?
# added
{b} added to {a} is?
what is {a} added to {b}?
if {b} is added to {a}, what comes out?
# work out
work out {a} plus {b}
figure out {a} + {b}
find {a} + {b}
find the sum of {a} and {b}
# homework
my homework says {a} + {b}. What is it?
at school they ask what {a} plus {b} is
help me with my maths: {a} + {b}
# check
I want to know what {a} and {b} add up to
do {a} and {b} add up to what?
what do {a} and {b} add up to?
# tell
tell me {a} + {b}
tell me what {a} plus {b} is
say what {a} + {b} is
# marbles
Tom has {a} marbles, Eve has {b}. How many do they have?
Mia won {a} points, then {b}. How many points has she?
we walked {a} miles yesterday and {b} today, how far is that?
""", held_out=("get", "total", "shop", "check"))
