"""One output beside its truth, ready to be judged or told."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.metrology.summary import Summary, summarise
from refkernels.metrology.ulp_errors import ulp
from refkernels.op import Sum

Array = npt.NDArray[Any]
Places = list[int]


def _no_cause(places: Places) -> str | None:
    return None


def _no_conditions() -> Mapping[str, Array]:
    return {}


@dataclass(frozen=True)
class Answer:
    """`bound`: the error that is allowed, by an op's bound or by `max_ulp`; `declared`: the library
    limit in ulp that an op's bound is, where it is no theorem. `broken`: what mathematics forbids
    and the output does. For a message only: `product`, the letters of a sum of products; `cause`
    says why it failed, given the worst places; `conditions` finds the condition numbers of all
    outputs."""

    name: str
    got: Array
    reference: Enclosure
    bound: npt.NDArray[np.float64]
    format: Format
    op: str = ""
    product: Sum | None = None
    elementwise: bool = False
    declared: float | None = None
    plain: Array | None = None
    inputs: Mapping[str, Array] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    cause: Callable[[Places], str | None] = _no_cause
    conditions: Callable[[], Mapping[str, Array]] = _no_conditions

    @cached_property
    def summary(self) -> Summary:
        """Without percentiles and histogram."""
        return summarise(self.got, self.reference, self.bound, self.format, distribution=False)

    @cached_property
    def condition(self) -> npt.NDArray[np.float64] | None:
        """Condition numbers of every element, where the op has them."""
        found = self.conditions().get(self.name)
        return None if found is None else np.broadcast_to(found, self.got.shape)

    @property
    def what(self) -> str:
        """As it is called in messages: "layernorm y"."""
        return f"{self.op} {self.name}".strip()

    @cached_property
    def ratios(self) -> npt.NDArray[np.float64]:
        """error / bound of every element, flat: infinite where a NaN or an infinity stands on one
        side only, 0 where the answer is the right rounding or the bound allows anything."""
        got = self.got.astype(np.float64).reshape(-1)
        exact = np.asarray(self.reference).reshape(-1)
        rounded = self.reference.round(self.format)[0].astype(np.float64).reshape(-1)
        bound = self.bound.reshape(-1)
        fine = (got == rounded) | (np.isnan(got) & np.isnan(exact)) | np.isposinf(bound)
        with np.errstate(all="ignore"):
            ratio = np.abs(got - exact) / bound
        return np.where(fine, 0.0, np.where(np.isnan(ratio), math.inf, ratio))

    def worst(self, most: int) -> Places:
        """Flat indices of the worst elements, the worst first: those within 1000 times of it."""
        order = np.argsort(-self.ratios, kind="stable")[:most]
        places = [int(place) for place in order if self.ratios[place] > 0.0]
        return [one for one in places if self.ratios[one] >= self.ratios[places[0]] * 1e-3]


def ulp_limit(reference: Enclosure, max_ulp: float, format: Format) -> npt.NDArray[np.float64]:
    """max_ulp ulp(z) of every exact value z; max_ulp smallest subnormals at z = 0. Finite, for an
    infinite bound would allow NaN."""
    exact = np.asarray(reference)
    units = np.where(np.isfinite(exact), ulp(exact, format), math.inf)
    below = (np.abs(np.frexp(exact)[0]) == 0.5) & (reference.lo * np.sign(reference.hi) < 0.0)
    below &= (np.abs(reference.lo) > reference.radius) & (units > format.min_subnormal)
    with np.errstate(over="ignore", invalid="ignore"):
        limit = np.where(below, units / 2.0, units) * max_ulp
    return np.nan_to_num(limit, nan=math.inf, posinf=np.finfo(np.float64).max)
