"""Families of requests for a stream of {c} {things}. {L} is "last" or "first"; a line may begin with the one
that it wants. A line that begins with "all: " asks for no single number."""

from .families import of_lists

STREAMS = of_lists("streams", """
# stream and tell
stream {c} {things} and tell me the {L} one
stream up to {c} {things} and tell me the {L} number
please stream {c} {things}, and tell me the {L} number of the sequence
all: stream {c} {things}
# which number
stream {c} {things}. Which number comes {L}?
let {c} {things} come in. Which one was {L}?
get {c} {things}; which is the {L} number?
# what is
get me {c} {things}. What is the {L} one?
produce {c} {things}, what is the {L} number?
read {c} {things} - what's the {L} one?
# give
give me the {L} of {c} {things}
give me {c} {things}, then the {L} one again
all: give me {c} {things}
# want
I want {c} {things} and to know the {L} one
I want to see {c} {things}. Say the {L} number at the end
I want the {L} number out of {c} {things}
# number first
{c} {things}, please, and the {L} number
{c} {things}. Name the {L} one
all: {c} {things}, please
# wish first
the {L} number interests me: fetch {c} {things}
tell me the {L} number after {c} {things}
I only care for the {L} one. Run {c} {things}
# let run
let it run for {c} {things} and report the {L} one
run {c} {things} and report the {L} number
all: let {c} {things} run
# can you
can you emit {c} {things} and say which was {L}?
could you stream {c} {things} and name the {L} one?
would you pull {c} {things} and give the {L} number back?
# wait
wait for {c} {things} and then say the {L} number
wait until {c} {things} are there, then tell me the {L} one
all: wait for {c} {things}
# watch
watch {c} {things} go by and note the {L} one for me
keep an eye on {c} {things}; I need the {L} number
# collect
collect {c} {things}. The {L} one is what I need
collect {c} {things} and hand me the {L}
all: collect {c} {things}
# generate
generate {c} {things} and let me know the {L} one
generate {c} {things}. I'd like to hear the {L} number
# count
have {c} {things} counted out; what was the {L} number?
count out {c} {things} and mention the {L} one
# take
take {c} {things} from the tool and answer with the {L} one
take {c} {things}, the {L} number is your answer
# show
show me {c} {things} and repeat the {L} number
show {c} {things}, and then just the {L} one
all: show me {c} {things}
# need
I need {c} {things}. Tell me how the {L} one reads
I need {c} {things}; the {L} number goes into my report
# next
the next {c} {things}, please. What's the {L} number?
send the next {c} {things} and tell me the {L}
all: send the next {c} {things}
# question
of {c} {things}, which one is {L}?
if you stream {c} {things}, what number is {L}?
# when done
start {c} {things}. When they are done, tell me the {L} one
start with {c} {things}, and when finished say the {L} number
all: start {c} {things}
# my friend
a friend asks for the {L} of {c} {things}, can you get it?
my boss wants {c} {things} and the {L} number written down
# job
your job: {c} {things}, then the {L} number
task: stream {c} {things}; result: the {L} one
# quick
quick, {c} {things}! And the {L} number
{c} {things}, {L} one, thanks
# ends with
last: stream {c} {things}. What does it end with?
first: stream {c} {things}. What does it begin with?
last: {c} {things} - how do they end?
# final
last: fetch {c} {things} and give me the final one
first: fetch {c} {things} and give me the initial one
last: what is the final value of {c} {things}?
# at the end
last: {c} {things}: what stands at the end?
first: {c} {things}: what stands at the beginning?
last: read out {c} {things} and stop at the end, I want that one
# most recent
last: get {c} {things} and tell me the most recent one
first: get {c} {things} and tell me the earliest one
last: which of {c} {things} came in most recently?
# like
I'd like {c} {things} and afterwards the {L} of them
I would like to hear the {L} number of {c} {things}
""", held_out=("which number", "wait", "take", "my friend", "at the end"))

# What may follow a request for any tool that turns out to stream numbers.
ENDINGS = of_lists("endings", """
# tell
Tell me the {L} number.
Then tell me the {L} value
Tell me the {L} one it gives
# which
Which number comes {L}?
Which value was the {L} one?
# what
What is the {L} number?
What's the {L} value it prints?
# only
I only need the {L} number
Only the {L} value matters
# report
Report the {L} number to me
Report just the {L} one
# give
Give me the {L} number at the end
And give me the {L} value, please
# final
last: What does it end with?
first: What does it begin with?
last: I need the final value
first: I need the initial value
# know
I want to know the {L} reading
Let me know the {L} number
# say
Say the {L} number when it is done
Say which one was {L}
# note
Note the {L} number for me
# interest
The {L} number is what interests me
# name
Name the {L} value
""", held_out=("which", "report"))
