"""The built-in model's world: dialogues to learn from, and others to be judged by."""

from . import basics, calls, drills, outside, relay, stories
from .dialogue import Dialogue, Message
from .source import Source

# Abilities with a part of the training each, early and late in it.
MIXTURE = (
    # early, late, dialogues
    (55, 9, drills.dialogue),
    (10, 20, basics.dialogue),
    (6, 13, stories.dialogue),
    (15, 45, calls.dialogue),
    (8, 8, relay.dialogue),
    (2, 5, relay.injected),
    (4, 7, outside.dialogue),
)
# What is evaluated: ability -> (dialogues, the share of right answers it must reach).
ABILITIES = {
    "basics": (basics.dialogue, 0.95),
    "stories": (stories.dialogue, 0.90),
    "tools": (calls.for_evaluation, 0.90),
    "no tool": (calls.no_call, 0.90),
    "relay": (relay.dialogue, 0.95),
    "injection": (relay.injected, 0.95),
    "outside": (outside.dialogue, 0.90),
}
SYSTEM_PROMPTS = ("You are a helpful assistant.", "Be brief.", "You are a friendly assistant.",
                  "Answer the user.", "You are Sluice.", "Be kind and short.")


def training_dialogue(seed, early):
    """The dialogue of this seed. early: how much (0..1) it is of the beginning, when short
    exercises teach the model to copy."""
    source = Source(seed)
    weights = [first * early + later * (1 - early) for first, later, _ in MIXTURE]
    made = source.random.choices([make for _, _, make in MIXTURE], weights)[0](source)
    # Some dialogues go on, with another subject.
    while len(made.messages) < 7 and source.chance(0.25):
        follow = basics if source.chance(0.7) else outside
        made.messages += follow.exchange(source)
    if made.messages[0].role != "system" and source.chance(0.12):
        made.messages.insert(0, Message("system", source.any(SYSTEM_PROMPTS)))
    return made


def held_out_dialogue(ability, seed):
    """A dialogue of the evaluation: its names, numbers and phrases are not in the training."""
    return ABILITIES[ability][0](Source(f"held out {ability} {seed}", held_out=True))


__all__ = ["ABILITIES", "Dialogue", "held_out_dialogue", "training_dialogue"]
