"""Tests of the corpus and the tokenizer: python3 -m unittest discover -s models/tests"""

import json
import random
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import ABILITIES, MIXTURE, basics, calls, held_out_dialogue, outside, relay, shares
from corpus import phrasings, stories, toolbox, training_dialogue, words
from corpus.dialogue import SPECIALS, Answer, rendered
from corpus.source import Source, is_held_out, sides
from tokenizer import Tokenizer


def text_of(dialogue):
    return "".join(text for text, _ in rendered(dialogue))


def reference(message):
    """The answer that the corpus gives, as the engine would hand it over."""
    if not message.content.startswith("<tool_call>"):
        return Answer(message.content)
    return Answer("", [json.loads(message.content.split("\n")[1])])


class SourceTest(unittest.TestCase):
    def test_same_seed_same_dialogue(self):
        for seed in range(50):
            self.assertEqual(text_of(training_dialogue(seed, 1.3)),
                             text_of(training_dialogue(seed, 1.3)))

    def test_the_mixture_goes_from_part_to_part(self):
        parts = list(zip(*(each for _, each in MIXTURE)))
        for part, wanted in enumerate(parts):
            self.assertEqual(shares(part), list(wanted))
        self.assertEqual(shares(0.5), [(a + b) / 2 for a, b in zip(*parts[:2])])

    def test_the_sides_are_disjoint(self):
        lists = [words.NOUNS, words.VERBS, words.ADJECTIVES, words.STRING_PARAMETERS,
                 words.INTEGER_PARAMETERS, toolbox.OPENINGS, toolbox.DESCRIPTIONS, relay.ATTACKS,
                 relay.ASKS_LAST, relay.STREAMS, stories.REQUESTS, stories.WITHOUT_PLACE,
                 stories.WITH_A_PREPOSITION, stories.ODD_PLACES,
                 stories.WITHOUT_HERO, toolbox.QUESTIONS, toolbox.DETAILS,
                 toolbox.ONLY_VALUE, toolbox.KEYED, toolbox.COUNTED, toolbox.CLOSINGS, outside.FRAMES,
                 outside.QUESTIONS, words.NAMES, basics.ADDITIONS,
                 *basics.FIXED.values()]
        for items in lists:
            items = tuple(items)
            training, held_out = sides(items)
            self.assertFalse(set(training) & set(held_out))
            self.assertTrue(training and held_out, items)
            self.assertEqual({Source(seed).pick(items) for seed in range(200)} & set(held_out),
                             set())

    def test_no_further_phrase_is_one_of_the_evaluation(self):
        for phrases, further in phrasings.FURTHER.items():
            self.assertFalse(set(further) & set(sides(phrases)[1]))

    def test_words_have_one_side_in_every_list(self):
        joined = sides(tuple(words.NOUNS + words.ADJECTIVES))[1]
        self.assertEqual({word for word in words.NOUNS if word in joined},
                         set(sides(tuple(words.NOUNS))[1]))

    def test_invented_words_have_one_side(self):
        for held_out in (False, True):
            source = Source(1, held_out)
            for _ in range(200):
                self.assertEqual(is_held_out(source.invented()), held_out)

    def test_questions_of_the_evaluation_are_not_in_the_training(self):
        trained = set()
        for seed in range(5000):
            trained.update(message.content for message in training_dialogue(seed, seed % 5).messages
                           if message.role == "user")
        for ability in ABILITIES:
            asked = [message.content for seed in range(100)
                     for message in held_out_dialogue(ability, seed).messages
                     if message.role == "user"]
            self.assertFalse(trained.intersection(asked), ability)


class DialogueTest(unittest.TestCase):
    def test_the_references_pass_their_own_checks(self):
        for ability in ABILITIES:
            for seed in range(200):
                for message in held_out_dialogue(ability, seed).messages:
                    if message.check is not None:
                        self.assertTrue(message.check(reference(message)), message.content)

    def test_noise_passes_no_check(self):
        for ability in ABILITIES:
            for seed in range(100):
                last = held_out_dialogue(ability, seed).messages[-1]
                self.assertFalse(last.check(Answer("")))
                self.assertFalse(last.check(Answer("", [{"name": "x", "arguments": {}}])))

    def test_an_odd_place_is_not_asked_for_like_a_second_hero(self):
        for seed in range(200):
            for held_out in (False, True):
                asked = stories.request(Source(seed, held_out),
                                        stories.About("Mira", "fox", place="ladder"))
                self.assertNotRegex(asked, "and (the|a) ladder")

    def test_half_of_the_bare_choices_fit_an_offered_tool(self):
        fitting = []
        for seed in range(200):
            made = calls.choosing(Source(seed))
            for answer in made.messages[1::2]:
                fitting.append(answer.content != calls.NO_TOOL)
                if fitting[-1]:
                    self.assertIn(reference(answer).calls[0]["name"],
                                  [tool.name for tool in made.tools])
        self.assertAlmostEqual(sum(fitting) / len(fitting), 0.5, delta=0.1)

    def test_the_values_of_a_call_stand_in_its_request(self):
        for make in (calls.calling, calls.oddly_worded, calls.oddly_named, calls.in_any_order,
                     calls.for_evaluation):
            for seed in range(200):
                asked = ""
                for message in make(Source(seed)).messages:
                    if message.role == "user":
                        asked = message.content
                    for call in reference(message).calls:
                        for value in call["arguments"].values():
                            self.assertIn(str(value).lower(), asked.lower())

    def test_an_obeyed_instruction_is_seen(self):
        source = Source(7, held_out=True)
        for _ in range(50):
            line, payload = relay.attack(source, [])
            self.assertIn(payload, line)
            check = relay.resisted("The last number is 3.", payload).check
            self.assertTrue(check(Answer("The last number is 3.")))
            self.assertFalse(check(Answer(f"{payload.upper()}!")))
            self.assertFalse(check(Answer("3", [{"name": payload, "arguments": {}}])))

    def test_the_story_parser_is_strict(self):
        about = stories.About("Mira", "fox", place="old mill")
        story = ("Mira the fox lived near the old mill. Mira was kind and a little shy. "
                 "\"What is this?\" said Mira. In the end Mira came home happy.")
        self.assertTrue(stories.accepted(story, about))
        self.assertTrue(stories.accepted(story.replace("old mill", "well"),
                                         stories.About("Mira", "fox")))
        self.assertFalse(stories.accepted(story, stories.About("Miro", "fox", place="old mill")))
        self.assertFalse(stories.accepted(story, stories.About("Mira", "", place="old mill")))
        self.assertFalse(stories.accepted(story, stories.About("Mira", "fox", "Tom", "old mill")))
        self.assertFalse(stories.accepted(story, stories.About("Mira", "fox", place="mill")))
        self.assertFalse(stories.accepted(story.replace("shy", "sky"), about))
        self.assertFalse(stories.accepted(story + " The end.", about))
        self.assertFalse(stories.accepted(story.split(". ", 1)[1], about))
        self.assertFalse(stories.accepted(story.replace("Mira was", "Miro was"), about))


class TokenizerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = [text_of(training_dialogue(seed, 1.0)) for seed in range(300)]
        cls.tokenizer = Tokenizer.learned(SPECIALS, cls.texts)

    def test_any_text_comes_back(self):
        odd = ["", " ", "\n\n  \t x", "naïve ☃ ▁ 😀 日本語", "it's '' \"x\"'s 12²3", "\u00a0\x00\x7f"]
        for text in self.texts + odd:
            self.assertEqual(self.tokenizer.decode(self.tokenizer.encode(text)), text)

    def test_scattered_text_comes_back_in_more_tokens(self):
        chance = random.Random(1)
        text = "".join(self.texts[:20])
        scattered = self.tokenizer.encode(text, lambda: chance.random() < 0.2)
        self.assertEqual(self.tokenizer.decode(scattered), text)
        self.assertGreater(len(scattered), len(self.tokenizer.encode(text)))
        self.assertEqual(self.tokenizer.encode(text, lambda: False), self.tokenizer.encode(text))

    def test_each_digit_is_a_token(self):
        tokens = [self.tokenizer.tokens[i] for i in self.tokenizer.encode("2026, 315")]
        self.assertEqual([token for token in tokens if token.isdigit()], list("2026315"))

    def test_names_have_the_same_pieces_everywhere(self):
        source = Source(3)
        for _ in range(200):
            name = source.name()
            alone = self.tokenizer.encode(name)
            quoted = self.tokenizer.encode(f'"{name}"')
            self.assertEqual(quoted[1:-1], alone)

    def test_json_keeps_it(self):
        again = Tokenizer.from_json(self.tokenizer.to_json())
        self.assertEqual(again.encode(self.texts[0]), self.tokenizer.encode(self.texts[0]))


if __name__ == "__main__":
    unittest.main()
