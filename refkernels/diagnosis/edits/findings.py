"""What the search has found: chains of edits, how near each comes, and which is told.

Edits whose predictions agree on all rows that were read, and on random inputs too, are one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from refkernels.contexts.graph import Edits
from refkernels.diagnosis.edits.catalogue import Edit
from refkernels.diagnosis.edits.names import axis_of, formula_of, named
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.edits.solved import ADDED
from refkernels.diagnosis.edits.usual import worded

_SURVIVORS, _COMPARED = 4, 12  # of an output
_DOMAIN = 0.125  # of random numbers
_SAME, _SOLVED = 1e-9, 1e-5  # relative difference of predictions of one program
_WORDY = 2  # times as long
_FEW, _OF_PARAM = 8.0, 16.0  # bits
_ROUNDING, _NEAR = 1.0, 4.0  # bits of an element, on average: merely rounded; to be certified
LEAST = 16.0  # bits that an edit saves, in all
NAMED = frozenset(("format", "length"))  # details of which several may do the same


class NearEdits(NamedTuple):
    """A chain of one or two edits, and the bits that each output costs when it is known. `price`:
    the bits of what was solved for; `alike`: its detail in `NAMED`, and others that do the same."""

    chain: tuple[Edit, ...]
    distances: Mapping[str, float]
    screen: Screen
    price: float = 0.0
    wrong: Mapping[str, int] = {}
    alike: tuple[str, ...] = ()

    def fits(self, output: str) -> bool:
        """Whether what is left is little enough to ask the oracle."""
        return self.leaves(output, _NEAR, 2)

    def ends(self, output: str) -> bool:
        """Whether what is left is what rounding leaves: nothing is looked for any more."""
        return self.leaves(output, _ROUNDING, 32)

    def leaves(self, output: str, bits: float, part: float) -> bool:
        """Whether no more than so many bits of an element are left, or so small a part of all of
        them, and of the wrong elements."""
        seen = self.screen.observed.get(output)
        if seen is None:
            return False
        before, wrong = (known[output] for known in self.screen.before)
        most = max(bits * seen.got.size, before / (2 * part))
        return self.distances[output] <= most and self.wrong[output] <= wrong // part

    def cost(self, output: str) -> tuple[float, bool, int]:
        """What one of several is chosen by: bits, up to a few, of which a param's own value is
        worth some; gradients that are lost; and the digits of its numbers."""
        params = sum(bool(edit.details.get("param")) for edit in self.chain)
        digits = sum(len(f"{abs(edit.details.get('value', 0)):.9g}") for edit in self.chain)
        bits = round((self.distances[output] + self.price - _OF_PARAM * params) / _FEW)
        return bits, self.chain[0].family != "gradient", digits

    def plainer(self, other: NearEdits, output: str) -> bool:
        """Whether it says the same program as another that costs as much, in far fewer words."""
        edit, its = self.chain[0], other.chain[0]
        if self.cost(output) != other.cost(output) or edit.place.op == "input":
            return False
        own, (cause, wordy) = told(edit, self.screen)[1], told(its, other.screen)
        lengths = (sum(len(str(text)) for text in words.values()) for words in (own, wordy))
        return cause == its.kind and _WORDY * next(lengths) < next(lengths)

    @property
    def changes(self) -> Edits:
        return {node: change for edit in self.chain for node, change in edit.changes.items()}

    def is_same(self, other: NearEdits) -> bool:
        """Whether both are one program: on the rows that are read, and on random numbers. Pairs
        with another number each stay apart: it would be told as the only one. So does a number on
        which results depend in steps, between two of which any would do."""
        numbers = [edit.details for edit in (*self.chain, *other.chain) if "value" in edit.details]
        pairs = len(self.chain) + len(other.chain) > 2
        if (pairs and numbers) or any("in_steps" in details for details in numbers):
            return False
        for elsewhere in (False, True):
            a, b = (e.screen.predicted(e.changes, elsewhere) for e in (self, other))
            if a is None or b is None:
                return False
            near = _SAME if not (self.price or other.price) else _SOLVED
            if not all(_alike(a[name], b[name], near, elsewhere) for name in a):
                return False
        return True


def _alike(a: Any, b: Any, near: float, elsewhere: bool) -> bool:
    """Whether predictions agree, relative to their usual size: terms may cancel. Of random numbers
    only some may be of a function's domain."""
    known = np.isfinite(a + b)
    if elsewhere and np.mean(known) > _DOMAIN:
        a, b = a[known], b[known]
    size = np.abs(a[np.isfinite(a)])
    usual = float(np.median(size)) if size.size else 0.0
    return np.allclose(a, b, near, near * usual, equal_nan=True)


def told(edit: Edit, screen: Screen) -> tuple[str, dict[str, Any]]:
    """An edit's cause, and the details that its words need."""
    edited = "forward" if screen.derive else screen.direction
    where = {"op": screen.problem.op.name, "direction": screen.direction, "pass": edited}
    details, array = worded(edit), screen.problem.inputs.get(str(edit.place.option))
    if edit.place.op == "input" and "axis" in details and array is not None:
        details["axis"] = axis_of(np.shape(array), edit.place.shape, details["axis"])
    if (added := _number_added(edit, screen)) is not None:
        return named(ADDED, {"part": formula_of(edit.place), "value": added}, where)
    return named(edit.kind, details, where)


def _number_added(edit: Edit, screen: Screen) -> float | None:
    """What an edit of a sum adds to it, if that is one number in every row: a first term that is 1
    in each, counted twice, is a 1 that is added."""
    two_numbers = edit.place.op == "welford"  # a mean and a sum of squares
    if edit.family != "reduction" or list(edit.changes) != [edit.place] or two_numbers:
        return None
    other, own = screen.value_of(edit.place, edit.changes), screen.value_of(edit.place)
    added = np.unique(other - own) if np.shape(other) == np.shape(own) else own[:0]
    return float(added[0]) if added.size == 1 < own.size and 0 < abs(added[0]) < np.inf else None


def nearest(findings: list[NearEdits], outputs: Iterable[str]) -> list[NearEdits]:
    """The nearest of each output, one of those that are the same program."""
    chosen: list[NearEdits] = []
    for name in outputs:
        of_output = [finding for finding in findings if name in finding.distances]
        of_output.sort(key=lambda finding: finding.cost(name))
        kept: list[NearEdits] = []
        for finding in of_output[:_COMPARED]:
            same = next((k for k, other in enumerate(kept) if finding.is_same(other)), None)
            if same is not None:
                alike = dict.fromkeys((*kept[same].alike, *finding.alike))
                kept[same] = kept[same]._replace(alike=tuple(alike))
            if same is None and len(kept) < _SURVIVORS:
                kept.append(finding)
            elif same is not None and finding.plainer(kept[same], name):
                kept[same] = finding
        chosen += [finding for finding in kept if finding not in chosen]
    return chosen


def simplest(findings: list[NearEdits], outputs: Iterable[str]) -> list[NearEdits]:
    """The findings, without those of one output where another explains it, and more, as well; and
    without pairs that save fewer bits over a single edit than their second one costs."""

    def reach(finding: NearEdits) -> set[str]:
        base = finding.screen.before[0]
        return {n for n in outputs if finding.fits(n) and finding.distances[n] + LEAST <= base[n]}

    reached = [(finding, reach(finding)) for finding in findings]

    def simpler(other: NearEdits, its: set[str], finding: NearEdits, mine: set[str]) -> bool:
        single = len(other.chain) < len(finding.chain)
        more = finding.price - other.price if single else _FEW
        near = all(other.distances[n] <= finding.distances[n] + more for n in mine)
        return (mine < its or (single and mine <= its)) and near

    return [
        finding
        for finding, mine in reached
        if not any(simpler(other, its, finding, mine) for other, its in reached)
    ]
