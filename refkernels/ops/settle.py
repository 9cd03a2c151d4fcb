"""settle(): the certified answer to a question, for every op that is a formula.

Tiers of `arithmetic.ladder`, each only for what the one before leaves open:

    Ball            every element, in blocks, on all threads (`draft`)
    DoubleDouble    the rows of open elements; of a staged formula their statistics, and then the
                    open elements alone (`selection`)
    Arb             those elements, in twice the bits until they decide it, up to 4,096
    Rational        once on the way: exact zeros and ties, where the formula is algebraic

Arb and Rational stop at a budget; what is open then stays as wide as it is. A value that is not
defined in real numbers (0 / 0), or whose inputs are not finite, is the IEEE reading of the
definition: binary64 arithmetic, with its infinities and NaN, but for overflow (`Unbounded`).
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import intersection
from refkernels.arithmetic.ladder import Draft, Open, climb
from refkernels.arithmetic.question import Question
from refkernels.contexts.arb import Arb
from refkernels.contexts.rational import Irrational, Rational
from refkernels.contexts.unbounded import Unbounded
from refkernels.ops import enclosing, readings
from refkernels.ops.canonical import Canonical
from refkernels.ops.draft import draft, undecided
from refkernels.ops.formula import Formula
from refkernels.ops.selection import Selection

PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
BUDGET = 1 << 24
"""Elements of the rows read, times precision / 128, for one answer; some minutes at most."""
_ALGEBRAIC = 512  # bits; before so many are taken Rational is asked
_SHARP = 2.0**-10  # ulp of binary64 that is tight for inputs of that format
_EXACT = threading.RLock()  # Arb's precision is the process's
Enclosures = dict[str, Enclosure]


def settle(
    formula: Formula,
    question: Canonical,
    names: tuple[str, ...],
    asked: Question,
    ieee: Formula | None = None,
) -> Enclosures:
    """The outputs of these names, canonical, as sharp as the question asks.

    formula    what is certified
    ieee       the definition whose binary64 arithmetic gives special values; formula by default
    """
    return _Answer(formula, question, names, asked, ieee or formula).settled()


class _Answer:
    """What is known so far."""

    def __init__(
        self,
        formula: Formula,
        question: Canonical,
        names: tuple[str, ...],
        asked: Question,
        ieee: Formula,
    ) -> None:
        self.formula, self.question, self.names, self.ieee = formula, question, names, ieee
        if asked.kind == "enclosure" and question.wide:
            asked = Question("ulp", formats.BINARY64, _SHARP)
        self.asked = asked
        self.known: dict[str, Draft] = {}

    def settled(self) -> Enclosures:
        found, left = draft(self.formula, self.question, self.names, self.asked)
        self.known = {name: Draft.of(one.reshape(-1)) for name, one in found.items()}
        if left and not self.question.finite:
            left = self._with_specials(left, only_finite=False)
        steps = [("double_double", self._double_double), ("exact", self._exact)]
        climb(self.known, left, "float64", steps, self._undecided)
        return {n: self.known[n].enclosure().reshape(one.shape) for n, one in found.items()}

    def _undecided(self, one: Enclosure) -> npt.NDArray[np.bool_]:
        return undecided(one, self.asked)

    def _at(self, places: Open) -> Enclosures:
        return {name: self.known[name].at(at) for name, at in places.items()}

    def _open(self, left: Open) -> Open:
        """What the question still leaves open."""
        marks = {name: self._undecided(one) for name, one in self._at(left).items()}
        return {name: left[name][one] for name, one in marks.items() if one.any()}

    def _double_double(self, left: Open) -> Enclosures:
        sharper = Selection(self.formula, self.question, left).read(
            readings.double_double().xp, enclosing.value
        )
        return {n: enclosing.narrower(one, sharper[n]) for n, one in self._at(left).items()}

    def _exact(self, left: Open) -> Enclosures:
        """Arb, in more and more bits, Rational once, and the poles that are left."""
        with _EXACT:
            self._refine(left)
        self._with_specials(self._open(left), only_finite=True)
        return self._at(left)

    def _refine(self, left: Open) -> None:
        spent = 0.0
        for precision in PRECISIONS:
            if precision == _ALGEBRAIC and self._open(left):
                self._rational(left, BUDGET // 64)
            selection = Selection(self.formula, self.question, self._open(left))
            spent += selection.cost * precision / 128
            if not selection.wanted or spent > BUDGET:
                return
            with Arb(precision) as xp:
                sharper = selection.read(xp, enclosing.arb(precision))
            if not self._meet(selection, sharper) and self.asked.kind != "rounding":
                return  # an Enclosure holds no more digits

    def _rational(self, left: Open, most: int) -> None:
        selection = Selection(self.formula, self.question, self._open(left))
        if selection.cost > most:
            return
        try:
            self._meet(selection, selection.read(Rational(), enclosing.rational))
        except (Irrational, ZeroDivisionError, ValueError):
            return  # not algebraic here, or not defined

    def _meet(self, selection: Selection, sharper: Enclosures) -> bool:
        """What is known, and this too; whether it says anything new, or may with more bits."""
        told = False
        for name, before in self._at(selection.wanted).items():
            both = intersection(before, sharper[name])
            self.known[name].put(selection.wanted[name], both)
            same = (both.radius == before.radius) & (both.scale == before.scale)
            told |= bool(np.any(~same | np.isinf(both.radius)))
        return told

    def _with_specials(self, left: Open, only_finite: bool) -> Open:
        """The definition's IEEE reading where nothing is known: NaN, infinities and zeros where an
        input is not finite; `only_finite`: NaN and poles where all are. A number that leaves the
        range of binary64 is no special value, not even a zero. Gives what is left."""
        unknown = {}
        for name, one in self._at(left).items():
            places = left[name][np.isinf(one.radius) & np.isfinite(one.hi)]
            finite = self.question.finite_at(name, places)
            unknown[name] = places[finite if only_finite else ~finite]
        selection = Selection(
            self.ieee, self.question, {n: i for n, i in unknown.items() if i.size}
        )
        nothing = selection.read(Unbounded(underflow=True), enclosing.computed)
        plain = nothing if only_finite else selection.read(Unbounded(), enclosing.computed)
        for name, one in plain.items():
            values = np.asarray(one)
            zero = (values == 0.0) & (np.asarray(nothing[name]) == 0.0)
            told = ~np.isfinite(values) | (zero & (not only_finite))
            self.known[name].put(selection.wanted[name][told], Enclosure(values[told]))
        return self._open(left)
