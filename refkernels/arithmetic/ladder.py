"""One ladder for all oracles: a draft of the answer, improved in place by one tier after another
where the question is still open.

    answer = Draft(hi, 0.0, radius)                    # the first tier's, for all elements
    climb({"c": answer}, {"c": left}, "float64", steps, question.undecided)
    answer.enclosure(shape)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import tiers
from refkernels.arithmetic.enclosure import PARTS, Enclosure, trusted

Indices = npt.NDArray[np.intp]
Open = dict[str, Indices]  # flat (C order) indices, by output
Step = Callable[[Open], Mapping[str, Enclosure]]
"""A tier's answers for some elements of the outputs, flat and in order."""


class Draft:
    """An Enclosure whose elements later tiers replace, in the arrays that it was made from.

    lo, radius and scale broadcast to hi's shape; a broadcast one is copied when an element changes.
    """

    def __init__(self, hi: Any, lo: Any = 0.0, radius: Any = 0.0, scale: Any = 0) -> None:
        self._parts: dict[str, Any] = dict(zip(PARTS, (hi, lo, radius, scale), strict=True))
        self.shape, self.size = hi.shape, hi.size
        arrays = {name: part for name, part in self._parts.items() if isinstance(part, np.ndarray)}
        self._own = {name for name, part in arrays.items() if part.shape == hi.shape}
        self._whole: Enclosure | None = None

    @staticmethod
    def of(known: Enclosure) -> "Draft":
        """From an Enclosure, which stays unchanged."""
        draft = Draft(*(getattr(known, part) for part in PARTS))
        draft._own = set()
        draft._whole = known
        return draft

    def at(self, index: Any) -> Enclosure:
        """The elements at the index, as they are now."""
        parts = (np.broadcast_to(part, self.shape)[index] for part in self._parts.values())
        return trusted(*parts)

    def put(self, index: Any, better: Enclosure) -> None:
        """Replaces the elements at the index by a later tier's."""
        self._whole = None
        for name, part in self._parts.items():
            new = getattr(better, name)
            if name not in self._own:
                current = np.broadcast_to(part, self.shape)
                signed = name == "hi"  # the signs of its zeros matter
                if not signed and np.all(current[index] == new):
                    continue
                # zeros cost nothing until they are written
                copied = signed or np.any(part)
                part = np.array(current, new.dtype) if copied else np.zeros(self.shape, new.dtype)
                self._parts[name] = part
                self._own.add(name)
            part[index] = new

    def enclosure(self) -> Enclosure:
        """The whole draft."""
        if self._whole is None:
            self._whole = trusted(*self._parts.values())
        return self._whole


def climb(
    known: Mapping[str, Draft],
    left: Open,
    first: str,
    steps: Sequence[tuple[str, Step]],
    undecided: Callable[[Enclosure], npt.NDArray[np.bool_]],
) -> None:
    """Improves the drafts at the open elements `left`, step by step, until none is open.

    Counts in `tiers` the elements that each tier answered: for `first`, which made the drafts, all
    that it did not leave open; for the last step, all that reached it.
    """
    tier, answered = first, sum(places.size for places in known.values())
    for name, step in steps:
        left = {output: at for output, at in left.items() if at.size}
        number = sum(at.size for at in left.values())
        tiers.answered(tier, answered - number)
        tier, answered = name, number
        if left:
            for output, better in step(left).items():
                draft = known[output]
                draft.put(np.unravel_index(left[output], draft.shape), better)
                left[output] = left[output][undecided(better)]
    tiers.answered(tier, answered)


def refine(
    known: Enclosure,
    left: Indices,
    precisions: Sequence[int],
    sharper: Callable[[Indices, int, Enclosure], Enclosure],
    undecided: Callable[[Enclosure], npt.NDArray[np.bool_]],
) -> Enclosure:
    """A tier of multiple precision: recomputes the open elements `left` of a flat answer in more
    and more bits, until none is open or the last precision is reached.

    sharper(left, bits, answer) recomputes the elements `left`, whose answer so far it gets.
    """
    draft = Draft.of(known)
    for precision in precisions:
        if not left.size:
            break
        better = sharper(left, precision, draft.at(left))
        draft.put(left, better)
        left = left[undecided(better)]
    return draft.enclosure()
