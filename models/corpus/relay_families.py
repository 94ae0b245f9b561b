"""Families of requests for a stream of {c} {things}. {L} is "last" or "first"; a line that begins with "all: "
asks for no single number."""

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
# like
I'd like {c} {things} and afterwards the {L} of them
I would like to hear the {L} number of {c} {things}
""", held_out=("which number", "wait", "take", "my friend"))
