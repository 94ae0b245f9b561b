"""Tests of the corpus and the tokenizer: python3 -m unittest discover -s models/tests"""

import json
import random
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import ABILITIES, MIXTURE, calls, held_out_dialogue, outside, relay, shares
from corpus import call_families, catalogue, natural, number_families, phrasings, relay_families
from corpus import result_families, results, stories, story_families, toolbox, training_dialogue, words
from corpus.dialogue import CHAT_TEMPLATE, SPECIALS, Answer, Tool, rendered
from corpus.kinds import BOOLEANS
from corpus.source import Source, is_held_out, sides
from tokenizer import Tokenizer


def text_of(dialogue):
    return "".join(text for text, _ in rendered(dialogue))


def reference(message):
    """The answer that the corpus gives, as the engine would hand it over."""
    if not message.content.startswith("<tool_call>"):
        return Answer(message.content)
    return Answer("", [json.loads(message.content.split("\n")[1])])


FAMILIES = (call_families.CALLS, story_families.STORIES, number_families.COUNTING, number_families.ADDING,
            relay_families.STREAMS, relay_families.ENDINGS, result_families.NATURAL, result_families.BENIGN,
            result_families.HOSTILE,
            result_families.PROGRESS)
LEAST = {"calls": 36, "stories": 24, "counting": 18, "adding": 18, "streams": 24, "endings": 12,
         "natural results": 36,
         "benign results": 18, "hostile results": 18, "progress": 10}


def spoken_forms(value):
    """How a request may have the value, in lower case."""
    if isinstance(value, bool):
        return dict(BOOLEANS)[value]
    forms = [str(value).lower()]
    if isinstance(value, int) and 0 <= value < 100:
        forms += [words.number_words(value)] + ["a dozen"] * (value == 12)
    return forms


class FamiliesTest(unittest.TestCase):
    def test_there_are_enough_and_one_of_six_is_held_out(self):
        for families in FAMILIES:
            training, held_out = families.sides
            self.assertGreaterEqual(len(families.all), LEAST[families.subject])
            self.assertEqual(len(training) + len(held_out), len(families.all))
            self.assertGreaterEqual(len(held_out), len(families.all) // 7, families.subject)

    def test_the_families_have_no_sentence_in_common(self):
        for families in FAMILIES:
            training, held_out = [{line for family in side for line in family[-1]} for side in families.sides]
            if families is call_families.CALLS:
                training = {(family[2], line) for family in families.sides[0] for line in family[-1]}
                held_out = {(family[2], line) for family in families.sides[1] for line in family[-1]}
            self.assertFalse(training & held_out, families.subject)

    def test_no_keyed_phrase_of_the_evaluation_is_in_the_training(self):
        def phrases(side):
            return {phrase for family in side if family[1] in ("keyed", "mixed", "first")
                    for phrase in call_families.KEYED[family[2]]}
        training, held_out = map(phrases, call_families.CALLS.sides)
        self.assertFalse(training & held_out - set(call_families.KEYED["set"]))

    def test_each_side_draws_its_own_families(self):
        for families in FAMILIES:
            for held_out in (False, True):
                drawn = {families.any(Source(seed, held_out))[0] for seed in range(300)}
                self.assertEqual(drawn, {family[0] for family in families.sides[held_out]})

    def test_tools_are_on_one_side(self):
        training, held_out = catalogue.SIDES
        self.assertFalse({name for entry in training for name in entry.names}
                         & {name for entry in held_out for name in entry.names})
        self.assertGreaterEqual(len(catalogue.ENTRIES), 150)
        self.assertGreater(len(held_out) * 7, len(catalogue.ENTRIES))


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
                 words.INTEGER_PARAMETERS, toolbox.OPENINGS, toolbox.DESCRIPTIONS,
                 stories.ODD_PLACES, story_families.TAILS, call_families.FILLERS, toolbox.QUESTIONS,
                 toolbox.DETAILS,
                 toolbox.ONLY_VALUE, toolbox.KEYED, toolbox.COUNTED, toolbox.CLOSINGS, outside.FRAMES,
                 outside.QUESTIONS, words.NAMES,
                 *phrasings.FIXED.values()]
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
                     calls.natural_calling, calls.for_evaluation):
            for seed in range(400):
                asked = ""
                for message in make(Source(seed, seed % 2 == 1)).messages:
                    if message.role == "user":
                        asked = message.content.lower()
                    for call in reference(message).calls:
                        for value in call["arguments"].values():
                            self.assertTrue(any(form in asked for form in spoken_forms(value)), (value,
                                                                                                 asked))

    def test_calls_fit_their_tools(self):
        for seed in range(400):
            request = natural.natural_request(Source(seed, seed % 2 == 1))
            kinds = {key: kind for key, kind, _ in request.tool.parameters}
            required = {key for key, _, needed in request.tool.parameters if needed}
            self.assertLessEqual(required, set(request.arguments))
            self.assertLessEqual(set(request.arguments), set(kinds))
            for key, value in request.arguments.items():
                if "|" in kinds[key]:
                    self.assertIn(value, kinds[key].split("|"))

    def test_what_is_said_of_results(self):
        for text, answer in (("It is 3 degrees. Bring a coat.", "It is 3 degrees. Bring a coat."),
                             ("42", "The result is 42."), ("-1.5", "The result is -1.5."),
                             ("blue kite", "The result is: blue kite"), ("- a\n- b", "a, b."),
                             ("Error: no such file", "The tool failed: no such file."),
                             ("a: 1\nb = x", "a: 1, b: x."), ("x y\nz", "x y\nz"),
                             ('{"city": "Oslo", "now": {"sky": "clear", "t": 2.5}}',
                              "city: Oslo, sky: clear, t: 2.5."),
                             ('[{"id": 1, "ok": true}, {"id": 2, "ok": null}]',
                              "id: 1, ok: true; id: 2, ok: null."), ('["a", "b"]', "a, b.")):
            self.assertEqual(results.answer_to(text), answer)

    def test_the_template_is_what_is_rendered(self):
        try:
            import jinja2
        except ImportError:
            self.skipTest("no jinja2")
        template = jinja2.Environment().from_string(CHAT_TEMPLATE)
        tools = [Tool("a_b", "Does it", [("x", "string", True), ("unit", "celsius|kelvin", False)]),
                 Tool("c", "", [])]
        listed = [{"type": "function", "function": {"name": tool.name, "description": tool.description,
                                                    "parameters": tool.definition()["inputSchema"]}}
                  for tool in tools]
        self.assertEqual(template.render(tools=listed, messages=[]).replace("c()", "c() "),
                         "<|tools|>" + "".join(tool.rendered() for tool in tools) + "<|end|>")

    def test_an_obeyed_instruction_is_seen(self):
        source = Source(7, held_out=True)
        for _ in range(50):
            line, payload = results.attack(source, [])
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
