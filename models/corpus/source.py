"""Where the randomness of the corpus comes from, and the wall between training and evaluation."""

import functools
import hashlib
import random

from .words import NAMES

ONSETS = ("b br c ch cl d dr f fl g gl gr h j k kl l m n p pl pr qu r s sh sl st t th tr v w y z"
          " sk sp sn").split()
VOWELS = "a e i o u a e i o u ai ea ee ia io oa ou".split()
CODAS = [""] * 12 + "b ck d ft g k l ll m n nd ng nt p r rd rn s sk st t x z".split()
HELD_OUT_OF = 6


def digest(*key):
    text = "\x1f".join(str(part) for part in key)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def is_held_out(*key):
    """Whether this word or pair of numbers belongs to the evaluation: one of six does."""
    return digest(*key) % HELD_OUT_OF == 0


@functools.cache
def sides(items):
    """The items for training and those for evaluation. A short list may have none of the latter by
    chance; then the first by hash goes there."""
    ranked = sorted(set(items), key=digest)
    held = [item for item in ranked if is_held_out(item)] or ranked[:1]
    return [item for item in ranked if item not in held], held


class Source:
    """Draws words, phrases and numbers of one side of the wall. With the same seed and the same
    side it draws the same."""

    def __init__(self, seed, held_out=False):
        self.random = random.Random(seed)
        self.held_out = held_out
        self.further = False  # whether to ask in the ways of phrasings.FURTHER, too
        self.odd_requests = False  # whether requests are to be worded as nobody would
        self.odd_names = False  # whether tools are to be named as few are
        self.odd_order = False  # whether many values are to be said, in any order, or the thing alone

    def owns(self, *key):
        return is_held_out(*key) == self.held_out

    def any(self, items):
        """One of the items, which both sides share (days, colours, formats)."""
        return self.random.choice(items)

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, items, usual=()):
        """One of the items that belong to this side. usual: what everybody says, for the training
        alone."""
        if usual and not self.held_out and self.chance(0.3):
            return self.any(usual)
        return self.random.choice(sides(tuple(items))[self.held_out])

    def number(self, low, high):
        return self.random.randint(low, high)

    def distinct(self, make, count):
        """Different things that make() returns."""
        found = []
        while len(found) < count:
            thing = make()
            if thing not in found:
                found.append(thing)
        return found

    def invented(self, syllables=None):
        """A word nobody knows, in lower case."""
        while True:
            count = syllables or self.any((1, 1, 2, 2, 2, 3))
            word = "".join(self.any(ONSETS) + self.any(VOWELS) + self.any(CODAS)
                           for _ in range(count))
            if len(word) > 2 and word not in ("the", "and", "for") and self.owns(word):
                return word

    def name(self):
        """A name for somebody or some place: mostly one that nobody has heard before."""
        return self.pick(NAMES) if self.chance(0.3) else self.invented().capitalize()
