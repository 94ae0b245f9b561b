"""Families of requests for a story. p: with heroes and a place; w: with heroes alone; n: with neither."""

import re

from .families import of_lists

STORIES = of_lists("stories", """
# tell
p: tell me a story about {who} in {where}
p: tell a story about {who} near {where}
p: tell us a story about {who} and {where}
w: tell me a story about {who}
w: tell a story about {who}
n: tell me a story
n: tell us a story
# write
p: write a story about {who} at {where}
p: write me a short story about {who} and {where}
p: write something short about {who} near {where}
w: write a story about {who}
w: write me a short story about {who}
n: write a story
n: write me a short story
# bare
p: a story about {who} in {where}
p: story about {who} and {where}
p: short story, {who}, at {where}
w: a story about {who}
w: story about {who}
n: a story
n: short story
# can you
p: can you tell me a story about {who} in {where}?
p: could you tell a little story with {who} at {where}?
p: would you write a story about {who} near {where}?
w: can you tell me a story about {who}?
w: could you write a little story with {who}?
n: can you tell me a story?
n: could you write a story?
# like to hear
p: I would like to hear a story about {who} in {where}
p: I'd like to hear about {who} and {where}
p: I'd love to hear what {who} did in {where}
w: I would like to hear a story about {who}
w: I'd love to hear a story with {who}
n: I would like to hear a story
n: I'd love to hear a story
# want
p: I want a story about {who} near {where}
p: we want a story about {who} and {where}
p: I want one with {who} at {where}, a story
w: I want a story about {who}
w: we want a story with {who}
n: I want a story
n: we want a story
# bedtime
p: a bedtime story about {who} in {where}, please
p: my son can't sleep, tell him a bedtime story about {who} in {where}
p: time for bed. A story with {who} near {where}?
w: a bedtime story about {who}
w: my daughter goes to bed now, she wants a story about {who}
n: a bedtime story
n: time for bed, a story please
# make up
p: make up a story with {who} in {where}
p: make something up about {who} and {where}, as a story
p: invent a story about {who} at {where}
w: make up a story with {who}
w: invent a story about {who}
n: make up a story
n: invent a story
# tale
p: a tale of {who} in {where}
p: tell me the tale of {who} and {where}
p: is there a tale about {who} near {where}?
w: a tale of {who}
w: tell me the tale of {who}
n: a tale
n: tell me a tale
# place first
p: in {where}, there is {who}. Tell me their story
p: in {where} - a story about {who}
p: near {where}, a story with {who}
p: at {where}: {who}. A short story!
w: there is {who}. Tell me their story
n: tell me any story
# set in
p: set a story in {where}, with {who} in it
p: a story set in {where} about {who}
p: a story that takes place at {where}, with {who}
w: set up a story with {who} in it
w: a story starring {who}
n: set up some story
# hero is
p: a story, please. The hero is {who}, the place is {where}
p: hero: {who}. place: {where}. story!
p: the hero should be {who} and it should happen in {where}. Tell the story
w: a story, please. The hero is {who}
w: hero: {who}. story!
n: a story, please, with any hero
# once
p: once upon a time there was {who} in {where}
p: once upon a time, {who}, near {where}. Go on
p: once there lived {who} by {where}, what happened?
w: once upon a time there was {who}
w: once there lived {who}, what happened?
n: once upon a time
# happens
p: what happens to {who} in {where}? Tell it as a story
p: what did {who} do near {where}? I want a story
p: something happens to {who} at {where}. Tell me
w: what happens to {who}? Tell it as a story
w: something happens to {who}. Tell me
n: tell me something that happened, as a story
# few sentences
p: in a few sentences, a story about {who} in {where}
p: a story of five sentences on {who} and {where}
p: keep it short: a story about {who} at {where}
w: in a few sentences, a story about {who}
w: a story of five sentences on {who}
n: in a few sentences, any story
# do you know
p: do you know a story about {who} in {where}?
p: do you know the one about {who} and {where}?
p: have you got a story of {who} at {where}?
w: do you know a story about {who}?
w: have you got a story of {who}?
n: do you know a story?
n: have you got a story?
# read
p: read me a story about {who} near {where}
p: read us something about {who} in {where}
w: read me a story about {who}
w: read me something about {who}, a story
n: read me a story
# adventure
p: tell me about an adventure of {who} in {where}
p: an adventure with {who} at {where}, please
p: {who} has an adventure in {where}. Tell me about it
w: tell me about an adventure of {who}
w: an adventure with {who}, please
n: tell me about an adventure
# heroes first
p: {who} in {where} - make a story of that
p: {who}, and {where}. Please turn that into a story
p: {who}. In {where}. A story!
w: {who} - make a story of that
w: {who}. Please turn that into a story
n: make a story of whatever you like
# with
p: with {who}, in {where}: a story
p: with {who} and near {where}, could there be a story?
w: with {who}: a story
w: with {who} in it, could there be a story?
n: could there be a story?
# for a child
p: my kid loves {who}. Tell her a story that plays in {where}
p: my little one asks for a story about {who} at {where}
p: for the children: a story about {who} in {where}
w: my little one asks for a story about {who}
w: for the children: a story about {who}
n: the children want a story
# funny
p: a funny story about {who} in {where}
p: a nice, gentle story about {who} and {where}
p: something cosy with {who} near {where}, a little story
w: a funny story about {who}
w: a nice, gentle story about {who}
n: a funny story
n: something cosy, a little story
# how about
p: how about a story with {who} in {where}?
p: what about a story of {who} near {where}?
w: how about a story with {who}?
w: what about a story of {who}?
n: how about a story?
# should be
p: my story should be about {who} and play in {where}
p: it should be a story about {who}, and {where} should be in it
w: my story should be about {who}
w: it should be a story about {who}
n: it should be some story
# need
p: I need a short story. In it are {who} and {where}
p: I need a story for tonight, about {who}, in {where}
w: I need a story for tonight, about {who}
n: I need a story for tonight
# let
p: let there be a story about {who} at {where}
p: let {who} come to {where} and tell me what happens
p: let's hear of {who} in {where}
w: let there be a story about {who}
w: let's hear a story of {who}
n: let's hear a story
# give
p: give me a story about {who} by {where}
p: give us {who} in {where}, a small story
w: give me a story about {who}
w: give us {who}, a small story
n: give me a story
# life
p: how does {who} live in {where}? A story, please
p: the life of {who} in {where}, told as a story
w: the life of {who}, told as a story
n: some life, told as a story
# narrate
p: narrate how {who} got on in {where}
p: narrate a story: {who}, {where}
w: narrate a story about {who}
n: narrate a story
# compose
p: compose a little tale for me: {who} at {where}
p: think up a tale in which {who} is in {where}
w: compose a little tale for me about {who}
w: think up a tale in which there is {who}
n: compose a little tale for me
""", held_out=("like to hear", "happens", "few sentences", "hero is", "should be"))
TAILS = (", and make it short", ", nothing scary", ", for my daughter", ", in simple words", ", if you can",
         ", with a happy end", ". It may be short", ". Not too long, please", ", for my little brother",
         ", something to smile about", ". Thank you", ". Surprise me", ", one with a good end",
         ", for tonight")
# Before a place that is none by its name, so that it is not taken for a hero.
PREPOSITION = re.compile(r"(?:in|near|at|by|to) \{where\}")
