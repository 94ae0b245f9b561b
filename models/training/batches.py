"""The stream of batches: fresh dialogues, sorted by length so that little of a batch is padding."""

import random

import torch

from corpus import training_dialogue
from corpus.dialogue import USER, rendered

POOL = 400  # dialogues that are sorted together
LONGEST = 800  # tokens of a dialogue; longer ones are left out
BATCH_TOKENS = 3300  # of a batch, with padding
ASKED_WEIGHT = 0.1  # of what the user says, most of which stood in the list of tools
SCATTERED = 0.3  # of the dialogues are in smaller tokens than need be: a name that nobody has
SCATTER = 0.12   # heard before is in tokens that rarely stand together, and must be copied too
SHORT = 24  # tokens; in longer answers each counts less, lest stories be all that is learned


def tokens_and_weights(tokenizer, dialogue, chance):
    ids, weights = [], []
    left_out = (lambda: chance.random() < SCATTER) if chance.random() < SCATTERED else None
    for text, said in rendered(dialogue):
        piece = tokenizer.encode(text, left_out)
        ids += piece
        asked = ASKED_WEIGHT if text.startswith(USER) else 0.0
        weights += [min(1.0, SHORT / len(piece)) ** 0.5 if said else asked] * len(piece)
    return ids, weights


def batches_of_pool(tokenizer, seed, part):
    """The batches (tokens, weights) of one pool, in a random order."""
    examples = []
    for index in range(POOL):
        example = tokens_and_weights(tokenizer, training_dialogue(f"{seed} {index}", part),
                                     random.Random(f"{seed} {index} tokens"))
        if len(example[0]) <= LONGEST:
            examples.append(example)
    examples.sort(key=lambda example: len(example[0]))
    batches, rows = [], []
    for example in examples:
        if rows and (len(rows) + 1) * len(example[0]) > BATCH_TOKENS:
            batches.append(rows)
            rows = []
        rows.append(example)
    batches.append(rows)
    random.Random(seed).shuffle(batches)
    return [padded(rows) for rows in batches]


def padded(rows):
    length = -(-max(len(ids) for ids, _ in rows) // 16) * 16 + 1
    tokens = torch.zeros(len(rows), length, dtype=torch.long)
    weights = torch.zeros(len(rows), length)
    for row, (ids, values) in enumerate(rows):
        tokens[row, :len(ids)] = torch.tensor(ids)
        weights[row, :len(ids)] = torch.tensor(values)
    return tokens, weights


class Lane:
    """An endless series of batches. Two lanes of one training never see the same dialogue."""

    def __init__(self, tokenizer, seed):
        self.tokenizer = tokenizer
        self.seed = seed
        self.pool, self.position, self.part, self.batches = -1, 0, 0.0, []

    def next(self, part):
        if self.position == len(self.batches):
            self.pool, self.position, self.part = self.pool + 1, 0, part
            self.fill()
        self.position += 1
        return self.batches[self.position - 1]

    def fill(self):
        self.batches = batches_of_pool(self.tokenizer, f"{self.seed} {self.pool}", self.part)

    def state(self):
        return self.pool, self.position, self.part

    def restore(self, state):
        self.pool, self.position, self.part = state
        if self.pool >= 0:
            self.fill()
