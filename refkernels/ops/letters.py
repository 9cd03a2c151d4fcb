"""Index letters: the axes of an op's arrays, and what an element of an output depends on.

    x[... n], weight[n]? -> y[... n], rstd[...]          coupled: n

A letter is one axis, of the same length wherever it occurs. `...` are any leading axes; each of
their indices is one row of the op. In an output, a letter is

    free         each of its indices is computed independently    ... of softmax, m of matmul
    coupled      the output has it, and every element depends on all of it        n of softmax
    contracted   only inputs have it                                              k of matmul

and a number, `x[2 3]`, is an axis of that length, on all of which every element depends.

After the brackets, `?` marks an optional array, `*` a list of such arrays, `:int` and `:bool`
arrays of integers and truth values, `:low` operands of float8, int8 or any format; the last three
have no gradient. A dotted name is a leaf of a tree: `state.exp_avg[...]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

from refkernels.arithmetic.arrays import Kind

ROWS = "..."
Shape = tuple[int, ...]
_ARGUMENT = re.compile(r"(\w[\w.]*)\[([^\]]*)\](\??)(\*?)(?::(int|bool|low))?$")


@dataclass(frozen=True)
class Argument:
    """An array of an op: its name, its letters (`...` first, if any), and its marks."""

    name: str
    letters: tuple[str, ...]
    optional: bool = False
    several: bool = False
    kind: Kind = "float"

    @property
    def rows(self) -> bool:
        """Whether it has an element, or a slice, for each row."""
        return self.letters[:1] == (ROWS,)

    @property
    def own(self) -> tuple[str, ...]:
        """Its letters without the rows."""
        return self.letters[1:] if self.rows else self.letters


@dataclass(frozen=True)
class Signature:
    """The arrays that an op takes and gives, by name. `everywhere`: the inputs whose every row
    matters to all rows, such as weights whose sum divides a mean."""

    takes: Mapping[str, Argument]
    gives: Mapping[str, Argument]
    coupled: Set[str]
    everywhere: Set[str] = frozenset()

    @staticmethod
    def parse(text: str, coupled: str = "", everywhere: str = "") -> Signature:
        """From `x[... n] -> y[... n]`, the coupled letters, and the names of `everywhere`, both
        separated by spaces.

        Raises ValueError for a string that is not a signature.
        """
        left, arrow, right = text.partition("->")
        if not arrow:
            raise ValueError(f"{text!r} is not a signature: write inputs -> outputs.")
        takes, gives = _arguments(left), _arguments(right)
        letters = {letter for argument in takes.values() for letter in argument.letters}
        given = {x for argument in gives.values() for x in argument.letters}
        fixed = {x for x in letters | given if x.isdigit()}
        if strange := given - letters - fixed:
            raise ValueError(f"No input has the letter {min(strange)!r} of an output in {text!r}.")
        if strange := set(coupled.split()) - letters:
            raise ValueError(f"No input has the coupled letter {min(strange)!r} in {text!r}.")
        return Signature(takes, gives, fixed.union(coupled.split()), {*everywhere.split()})

    def backward(self, cotangents: Mapping[str, str], gradients: Mapping[str, str]) -> Signature:
        """The signature of the backward pass. It takes the cotangents, each named with its output,
        and then the inputs; it gives the gradients, each named with its input."""
        above = {name: _named(self.gives[output], name) for name, output in cotangents.items()}
        below = {name: _named(self.takes[taken], name) for name, taken in gradients.items()}
        return Signature({**above, **self.takes}, below, self.coupled, self.everywhere)

    def role(self, output: str, letter: str) -> Literal["free", "coupled", "contracted"]:
        """The role of a letter in an output."""
        if letter not in self.gives[output].letters:
            return "contracted"
        return "coupled" if letter in self.coupled else "free"

    def dependencies(
        self, output: str, index: tuple[int, ...], shapes: Mapping[str, Shape]
    ) -> dict[str, tuple[slice, ...]]:
        """The slices of the inputs, of these shapes, on which an element of an output depends.

        Raises ValueError where the index has fewer places than the output has letters.
        """
        letters_of_output = self.gives[output].own
        rows, places = self._split(output, index)
        at = dict(zip(letters_of_output, places, strict=True))
        free = {letter: i for letter, i in at.items() if letter not in self.coupled}
        return {
            name: (
                *_leading(
                    self.takes[name],
                    rows if self.gives[output].rows and name not in self.everywhere else None,
                    shape,
                ),
                *(
                    slice(free[letter], free[letter] + 1) if letter in free else slice(None)
                    for letter in self.takes[name].own
                ),
            )
            for name, shape in shapes.items()
        }

    def _split(self, output: str, index: tuple[int, ...]) -> tuple[Shape, Shape]:
        """The indices of the rows, and those of the letters."""
        argument = self.gives[output]
        first = len(index) - len(argument.own)
        if first < 0 or (first and not argument.rows):
            raise ValueError(
                f"{output}[{' '.join(argument.letters)}] has no element at {index}: it has "
                f"{len(argument.own)} axes."
            )
        return index[:first], index[first:]


def _leading(argument: Argument, rows: Shape | None, shape: Shape) -> list[slice]:
    """The slices of an input's leading axes, which broadcast against the output's."""
    number = len(shape) - len(argument.own)
    if not argument.rows or not number:
        return []
    if rows is None:
        return [slice(None)] * number
    places = rows[len(rows) - number :]
    return [
        slice(0, 1) if length == 1 else slice(place, place + 1)
        for place, length in zip(places, shape, strict=False)
    ]


def _named(argument: Argument, name: str) -> Argument:
    return Argument(name, argument.letters, argument.optional, argument.several)


def _arguments(text: str) -> dict[str, Argument]:
    arguments: dict[str, Argument] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        match = _ARGUMENT.match(part)
        if match is None:
            raise ValueError(
                f"{part!r} is not an array of a signature: write x[... n] or weight[n]?."
            )
        name, letters, optional, several, kind = match.groups()
        of_kind: Any = kind or "float"
        axes = tuple(letters.split())
        lettered = [letter for letter in axes if not letter.isdigit()]
        if ROWS in axes[1:] or len(set(lettered)) < len(lettered) or name in arguments:
            raise ValueError(
                f"{part!r}: write each name, and each letter in it, once, `...` first."
            )
        arguments[name] = Argument(name, axes, bool(optional), bool(several), of_kind)
    if not arguments:
        raise ValueError("A signature has an input and an output: write x[...] -> y[...].")
    return arguments
