"""One output with its truth, ready to be judged and reported."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.metrology.permitted import permitted
from refkernels.metrology.summary import Summary
from refkernels.metrology.ulp_errors import ulp
from refkernels.op import Sum
from refkernels.range_limits import VAGUE, RangeLimits, doubtful_error

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Breaks = tuple[tuple[str, ...], Bools]


@dataclass(frozen=True)
class JudgedOutput:
    """One output of a kernel, and everything needed to judge it.

    bound       the allowed error, by the op's bound or by `max_ulp`
    declared    the library limit in ulp from which the op's bound comes, if it is not a theorem
    right       gives right answers to compare the error with (`Truth.right`)
    attainable  gives the bounds by which errors are avoidable (`Truth.attainable`)
    limits      what the named forms do beyond the format's range; None where only the bound counts
    breaks      the mathematical statements that an output violates outside of some elements, and
                where

    For messages only: `product`, the letters of a sum of products; `cause`, which gives the cause
    of a failure; `conditions`, the condition numbers of all outputs.
    """

    name: str
    got: Array
    reference: Enclosure
    bound: npt.NDArray[np.float64]
    format: Format
    op: str = ""
    product: Sum | None = None
    elementwise: bool = False
    declared: float | None = None
    right: Callable[[], Iterator[Array]] | None = None
    attainable: Callable[[], Sequence[Mapping[str, Array]]] = tuple
    inputs: Mapping[str, Array] = field(default_factory=dict)
    limits: RangeLimits | None = None
    breaks: Callable[[Array, Bools], Breaks] = lambda got, _: ((), got != got)
    cause: Callable[[], str | None] = lambda: None
    conditions: Callable[[], Mapping[str, Array]] = dict

    @cached_property
    def summary(self) -> Summary:
        """The summary, without percentiles and histogram."""
        return self._permitted[0]

    @property
    def out_of_range(self) -> npt.NDArray[np.bool_]:
        """The range-limited elements."""
        return self._permitted[1]

    @property
    def broken(self) -> tuple[str, ...]:
        """The mathematical statements that the output violates."""
        return self._breaks[0]

    @property
    def breaking(self) -> Bools:
        """Where it violates one."""
        return self._breaks[1]

    @cached_property
    def _breaks(self) -> Breaks:
        return self.breaks(self.got, self.out_of_range)

    @cached_property
    def _permitted(self) -> tuple[Summary, npt.NDArray[np.bool_]]:
        parts = self.got, self.reference, self.bound, self.format, self.limits
        return permitted(self.name, *parts, distribution=False)

    @cached_property
    def condition(self) -> npt.NDArray[np.float64] | None:
        """The condition number of every element, if the op has them."""
        condition = self.conditions().get(self.name)
        return None if condition is None else np.broadcast_to(condition, self.got.shape)

    @property
    def uncertified(self) -> npt.NDArray[np.bool_]:
        """The elements whose exact value is not enclosed."""
        radius = np.broadcast_to(self.reference.radius, self.got.shape)
        return np.isinf(radius) & np.isfinite(self.reference.hi)

    @property
    def label(self) -> str:
        """The output's name in messages: "layernorm y"."""
        return f"{self.op} {self.name}".strip()

    @property
    def width(self) -> float:
        """The error that the bound of a middling element allows, as a share of the result."""
        doubtful = doubtful_error(self.reference, self.format)
        with np.errstate(all="ignore"):
            shares = self.bound / (math.nan if doubtful is None else doubtful)
        shares = shares[np.isfinite(shares)]
        return VAGUE * float(np.median(shares)) if shares.size else 0.0

    @cached_property
    def ratios(self) -> npt.NDArray[np.float64]:
        """error / bound of every element, flat: infinite where only one side is NaN or infinite,
        and where the answer is impossible; 0 where it is correctly rounded or the bound is
        infinite."""
        got = self.got.astype(np.float64).reshape(-1)
        exact = np.asarray(self.reference).reshape(-1)
        rounded = self.reference.round(self.format)[0].astype(np.float64).reshape(-1)
        bound = self.bound.reshape(-1)
        passing = (got == rounded) | (np.isnan(got) & np.isnan(exact)) | np.isposinf(bound)
        passing |= self.uncertified.reshape(-1)
        with np.errstate(all="ignore"):
            ratio = np.abs(got - exact) / bound
        ratio = np.where(passing, 0.0, np.where(np.isnan(ratio), math.inf, ratio))
        return np.where(self.breaking.reshape(-1), math.inf, ratio)

    def worst(self, count: int) -> list[int]:
        """Flat indices of at most `count` elements, the worst first, without those whose ratio is
        below a thousandth of the worst one's."""
        order = np.argsort(-self.ratios, kind="stable")[:count]
        places = [int(place) for place in order if self.ratios[place] > 0.0]
        return [place for place in places if self.ratios[place] >= self.ratios[places[0]] * 1e-3]


def ulp_limit(reference: Enclosure, max_ulp: float, format: Format) -> npt.NDArray[np.float64]:
    """max_ulp ulp(z) for every exact value z; max_ulp smallest subnormals at z = 0. The limit is
    finite, because an infinite bound would allow NaN."""
    exact = np.asarray(reference)
    units = np.where(np.isfinite(exact), ulp(exact, format), math.inf)
    below = (np.abs(np.frexp(exact)[0]) == 0.5) & (reference.lo * np.sign(reference.hi) < 0.0)
    below &= (np.abs(reference.lo) > reference.radius) & (units > format.min_subnormal)
    with np.errstate(over="ignore", invalid="ignore"):
        limit = np.where(below, units / 2.0, units) * max_ulp
    return np.nan_to_num(limit, nan=math.inf, posinf=np.finfo(np.float64).max)
