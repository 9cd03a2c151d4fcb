"""The words of a measurement's report (`measured.json`) and of a comparison of two runs
(`compared.json`) by language, and the phrases that are built from them."""

from __future__ import annotations

from refkernels.reporting.words.catalogues import Texts, by_language

words_of = by_language("measured", "compared").__getitem__


def counted(words: Texts, noun: str, number: int) -> str:
    """`1 case`, `1,204 cases`."""
    return words(noun if number == 1 else f"{noun}s", n=f"{number:,}")


def some_of(words: Texts, names: list[str], most: int) -> str:
    """`a, b and 11 more` ops: `listed`, or the first of more than `most`."""
    if len(names) <= most:
        return listed(words, names)
    shown, left = words["list"].join(names[: most - 1]), len(names) - most + 1
    return words("and_more", names=shown, n=left)


def listed(words: Texts, names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`. In Chinese, a space sets off Latin words and figures: `a 和 b`,
    but `前向和反向`."""
    if len(names) < 2:
        return "".join(names)
    before, last = words["list"].join(names[:-1]), names[-1]
    joint = words["and"]
    if words.lang == "zh":
        joint = f"{' ' * before[-1:].isascii()}{joint}{' ' * last[:1].isascii()}"
    return before + joint + last
