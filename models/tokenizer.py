"""The vocabulary: byte-level BPE as llama.cpp's "gpt-2", so that any UTF-8 comes back unchanged.

Merges are learned in three rounds, so that names are easy to copy: letters within words, then
punctuation, then the space before whole frequent words. So a word that nobody has seen falls into
the same pieces with and without a space before it, and each digit is a token.
"""

import json
import re
from collections import Counter

LETTER_MERGES, SIGN_MERGES, SPACE_MERGES = 700, 30, 220
SPLIT = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_letters():
    """GPT-2's printable letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, spare = {}, 256
    for byte in range(256):
        if byte in plain:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(spare)
            spare += 1
    return letters


LETTERS = byte_letters()
BYTES = {letter: byte for byte, letter in LETTERS.items()}
SPACE = LETTERS[32]


def spelled(text):
    return "".join(LETTERS[byte] for byte in text.encode())


def merged(pieces, pair):
    out, i = [], 0
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            out.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return tuple(out)


def learn_merges(words, count):
    """The `count` merges of plain BPE over a Counter of words."""
    merges = []
    split = {word: tuple(word) for word in words}
    pairs, holders = Counter(), {}
    for word, pieces in split.items():
        for pair in zip(pieces, pieces[1:]):
            pairs[pair] += words[word]
            holders.setdefault(pair, set()).add(word)
    while len(merges) < count and pairs:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for word in sorted(holders.pop(best)):
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] -= words[word]
            split[word] = merged(split[word], best)
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += words[word]
                holders.setdefault(pair, set()).add(word)
        pairs.pop(best, None)
    return merges


class Tokenizer:
    """Text to token numbers as llama.cpp does it. Not thread-safe (it remembers words)."""

    def __init__(self, specials, merges):
        self.specials = list(specials)
        self.merges = [tuple(merge) for merge in merges]
        self.tokens = [*self.specials, *(LETTERS[byte] for byte in range(256))]
        self.tokens += [first + second for first, second in self.merges]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.ranks = {merge: rank for rank, merge in enumerate(self.merges)}
        self.special_split = re.compile("(" + "|".join(map(re.escape, self.specials)) + ")")
        self.known = {}

    @classmethod
    def learned(cls, specials, texts):
        words, signs, spaced = Counter(), Counter(), Counter()
        split = re.compile("|".join(map(re.escape, specials)))
        for text in texts:
            for part in split.split(text):
                for piece in SPLIT.findall(part):
                    bare = piece.removeprefix(" ")
                    if bare.isascii() and bare.isalpha():
                        words[bare] += 1
                        if bare != piece and len(bare) > 1:
                            spaced[bare] += 1
                    elif bare.isascii() and bare and not any(c.isalnum() or c.isspace() for c in bare):
                        signs[spelled(piece)] += 1
        merges = learn_merges(words, LETTER_MERGES)
        whole = {first + second for first, second in merges}
        merges += learn_merges(signs, SIGN_MERGES)
        frequent = [word for word, _ in sorted(spaced.items(), key=lambda item: (-item[1], item[0]))
                    if word in whole]
        merges += [(SPACE, word) for word in frequent[:SPACE_MERGES]]
        return cls(specials, merges)

    def word(self, text):
        """The tokens of one piece that SPLIT made."""
        found = self.known.get(text)
        if found is None:
            pieces = tuple(spelled(text))
            while len(pieces) > 1:
                best = min(zip(pieces, pieces[1:]), key=lambda pair: self.ranks.get(pair, 1 << 30))
                if best not in self.ranks:
                    break
                pieces = merged(pieces, best)
            found = [self.ids[piece] for piece in pieces]
            if len(self.known) < 200_000:
                self.known[text] = found
        return found

    def scattered_word(self, text, left_out):
        """The same in smaller tokens than need be: left_out() says which merges are not made."""
        pieces = tuple(spelled(text))
        while True:
            pairs = [pair for pair in zip(pieces, pieces[1:])
                     if pair in self.ranks and not left_out()]
            if not pairs:
                return [self.ids[piece] for piece in pieces]
            pieces = merged(pieces, min(pairs, key=self.ranks.get))

    def encode(self, text, left_out=None):
        """The tokens of the text; with left_out, those of scattered_word()."""
        out = []
        for part in self.special_split.split(text):
            if part in self.specials:
                out.append(self.ids[part])
            elif part:
                for piece in SPLIT.findall(part):
                    out += self.word(piece) if left_out is None else \
                        self.scattered_word(piece, left_out)
        return out

    def decode(self, ids):
        out = bytearray()
        for index in ids:
            token = self.tokens[index]
            out += token.encode() if token in self.specials else bytes(BYTES[c] for c in token)
        return out.decode(errors="replace")

    def to_json(self):
        return json.dumps({"specials": self.specials, "merges": self.merges})

    @classmethod
    def from_json(cls, text):
        data = json.loads(text)
        return cls(data["specials"], data["merges"])
