"""Families of phrasings: each is a grammar of its own, and one of six is for the evaluation alone."""

from .source import is_held_out


class Families:
    """Families by name, with their sides of the wall. A family is a tuple; its first item is its name."""

    def __init__(self, subject, families, held_out=()):
        """held_out: the names of those for the evaluation, where it is not the hash that says it."""
        self.subject, self.all = subject, tuple(families)
        names = [family[0] for family in self.all]
        assert len(set(names)) == len(names) and set(held_out) <= set(names), subject
        held_out = [family for family in self.all if family[0] in held_out
                    or not held_out and is_held_out("family", subject, family[0])]
        self.sides = tuple(family for family in self.all if family not in held_out), tuple(held_out)

    def any(self, source):
        return source.any(self.sides[source.held_out])


def of_lists(subject, text, held_out=()):
    """Families from a text: a line "# name" starts one, whose phrasings are the lines that follow."""
    families = []
    for line in text.strip().splitlines():
        if line.startswith("# ") and "{" not in line:
            families.append((line[2:], []))
        elif line.strip():
            families[-1][1].append(line.strip().replace("\\n", "\n"))
    return Families(subject, ((name, tuple(lines)) for name, lines in families), held_out)
