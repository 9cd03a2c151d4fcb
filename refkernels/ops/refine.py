"""refine(): the certified answer to a question, for every op that is a formula.

Tiers of `arithmetic.ladder`, each only for what the one before leaves open:

    Ball            every element, in blocks, on all threads (`draft`)
    DoubleDouble    the rows of open elements; of a staged formula their statistics, and then the
                    open elements alone (`selection`)
    Arb             those elements, in twice the bits until they decide it, up to 4,096
    Rational        once on the way: exact zeros and ties, where the formula is algebraic

Arb and Rational stop at a budget; elements that are still open then keep their width. A value that
is undefined in real numbers (0 / 0), or whose inputs are not finite, is the IEEE reading of the
definition: binary64 arithmetic, with its infinities and NaN, except for overflow (`Unbounded`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import intersection
from refkernels.arithmetic.ladder import Draft, Open, climb
from refkernels.arithmetic.question import Question
from refkernels.contexts.arb import Arb
from refkernels.contexts.rational import Irrational, Rational
from refkernels.contexts.signs import Signs
from refkernels.contexts.unbounded import Unbounded
from refkernels.ops import enclosing, readings
from refkernels.ops.canonical import Canonical
from refkernels.ops.draft import Drafted, draft, undecided
from refkernels.ops.formula import Formula
from refkernels.ops.selection import Selection

PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
BUDGET = 1 << 24
"""Elements of the rows read, times precision / 128, for one answer: a few minutes at most."""
_ALGEBRAIC = 512  # bits; Rational is tried before this precision
_SHARP = 2.0**-10  # in ulp of binary64: tight for inputs of that format
_SMALL = 2.0**-1000
_EXACT = threading.RLock()  # Arb's precision is global to the process
Enclosures = dict[str, Enclosure]


def refine(
    formula: Formula,
    question: Canonical,
    names: tuple[str, ...],
    goal: Question,
    ieee: Formula | None = None,
    drafted: Drafted | None = None,
) -> Enclosures:
    """The outputs of these names, in canonical shape, as sharp as `goal` demands.

    formula    the certified formula
    ieee       the definition whose binary64 arithmetic gives special values; formula by default
    drafted    what a tuned tier answers, in the place of `draft`
    """
    if goal.kind == "enclosure" and question.wide:
        goal = Question("ulp", formats.BINARY64, _SHARP)
    known, left = drafted or draft(formula, question, names, goal)
    _AnswerSoFar(formula, question, goal, ieee or formula, known).settle(left)
    return {name: answer.enclosure() for name, answer in known.items()}


class _Widths:
    """The widths of Arb's answers at the previous precision."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]] = {}

    def narrowing(self, selected: Open, answers: Enclosures) -> Open:
        """The elements that more bits make narrower. The width of the others belongs to the value:
        the derivatives at a kink fill an interval."""
        narrowing = {}
        for name, places in selected.items():
            answer = answers[name]
            with np.errstate(all="ignore"):
                width = np.log2(answer.radius) + answer.scale  # -inf of an exact one
            wanted = np.ones(places.size, bool)
            if name in self._known:
                earlier, widths = self._known[name]
                last = widths[np.searchsorted(earlier, places)]
                wanted = (width < last - 1.0) | np.isposinf(width)
            self._known[name] = places, width
            narrowing[name] = places[wanted]
        return narrowing


@dataclass(frozen=True)
class _AnswerSoFar:
    """A draft of each output, `known`."""

    formula: Formula
    question: Canonical
    goal: Question
    ieee: Formula
    known: Mapping[str, Draft]

    def settle(self, left: Open) -> None:
        """Improves the open elements."""
        if any(at.size for at in left.values()) and not self.question.finite:
            left = self._with_specials(left, only_finite=False)
        left = self._with_signs(left)
        steps = [("double_double", self._double_double), ("exact", self._exact)]
        climb(self.known, left, "float64", steps, self._undecided)

    def _undecided(self, answer: Enclosure) -> npt.NDArray[np.bool_]:
        return undecided(answer, self.goal)

    def _at(self, places: Open) -> Enclosures:
        return {name: self.known[name].at(self._index(name, at)) for name, at in places.items()}

    def _index(self, name: str, flat: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], ...]:
        return np.unravel_index(flat, self.known[name].shape)

    def _open(self, left: Open) -> Open:
        """The elements that are still open."""
        marks = {name: self._undecided(marked) for name, marked in self._at(left).items()}
        return {name: left[name][marked] for name, marked in marks.items() if marked.any()}

    def _with_signs(self, left: Open) -> Open:
        """The signs of numbers too small for binary64, as what a softmax gives to a masked score.
        Returns the elements that are still open."""
        small = {}
        for name, answer in self._at(left).items():
            tiny = (answer.radius < _SMALL) & (answer.scale == 0)
            small[name] = left[name][tiny & (np.abs(answer.hi) <= answer.radius)]
        wanted = {name: places for name, places in small.items() if places.size}
        if not wanted:
            return left
        selection = Selection(self.formula, self.question, wanted)
        for name, answer in selection.read(Signs(), enclosing.value).items():
            index = self._index(name, selection.wanted[name])
            self.known[name].put(index, enclosing.narrower(self.known[name].at(index), answer))
        return self._open(left)

    def _double_double(self, left: Open) -> Enclosures:
        sharper = Selection(self.formula, self.question, left).read(
            readings.double_double().xp, enclosing.value
        )
        return {n: enclosing.narrower(before, sharper[n]) for n, before in self._at(left).items()}

    def _exact(self, left: Open) -> Enclosures:
        """Arb in more and more bits, Rational once, and the remaining poles."""
        with _EXACT:
            self._refine(left)
        self._with_specials(self._open(left), only_finite=True)
        return self._at(left)

    def _refine(self, left: Open) -> None:
        spent, before = 0.0, _Widths()
        for precision in PRECISIONS:
            if precision == _ALGEBRAIC and self._open(left):
                self._rational(left, BUDGET // 64)
            selection = Selection(self.formula, self.question, self._open(left))
            spent += selection.cost * precision / 128
            if not selection.wanted or spent > BUDGET:
                return
            with Arb(precision) as xp:
                sharper = selection.read(xp, enclosing.arb(precision))
            if not self._meet(selection, sharper) and self.goal.kind != "rounding":
                return  # an Enclosure holds no more digits
            narrowing = before.narrowing(selection.wanted, sharper)
            left = narrowing if precision >= _ALGEBRAIC else left

    def _rational(self, left: Open, budget: int) -> None:
        selection = Selection(self.formula, self.question, self._open(left))
        if selection.cost > budget:
            return
        try:
            self._meet(selection, selection.read(Rational(), enclosing.rational))
        except (Irrational, ZeroDivisionError, ValueError):
            return  # not algebraic here, or not defined

    def _meet(self, selection: Selection, sharper: Enclosures) -> bool:
        """Intersects the drafts with sharper answers. Returns whether that narrowed anything, or
        more bits may."""
        gained = False
        for name, before in self._at(selection.wanted).items():
            joint = intersection(before, sharper[name])
            self.known[name].put(self._index(name, selection.wanted[name]), joint)
            unchanged = (joint.radius == before.radius) & (joint.scale == before.scale)
            gained |= bool(np.any(~unchanged | np.isinf(joint.radius)))
        return gained

    def _with_specials(self, left: Open, only_finite: bool) -> Open:
        """The definition's IEEE reading where nothing is known: NaN, infinities and zeros where an
        input is not finite; with `only_finite`, NaN and poles where all inputs are. A number that
        leaves the range of binary64 is not a special value, not even a zero. Returns the elements
        that are still open."""
        unknown = {}
        for name, answer in self._at(left).items():
            places = left[name][np.isinf(answer.radius) & np.isfinite(answer.hi)]
            finite = self.question.finite_at(name, places)
            unknown[name] = places[finite if only_finite else ~finite]
        selection = Selection(
            self.ieee, self.question, {n: i for n, i in unknown.items() if i.size}
        )
        nothing = selection.read(Unbounded(underflow=True), enclosing.computed)
        plain = nothing if only_finite else selection.read(Unbounded(), enclosing.computed)
        for name, answer in plain.items():
            values = np.asarray(answer)
            zero = (values == 0.0) & (np.asarray(nothing[name]) == 0.0)
            special = ~np.isfinite(values) | (zero & (not only_finite))
            index = self._index(name, selection.wanted[name][special])
            self.known[name].put(index, Enclosure(values[special]))
        return self._open(left)
