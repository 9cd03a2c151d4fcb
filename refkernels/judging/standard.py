"""The standard that an answer to a challenge must meet.

A `Challenge` is one question to a kernel. Its `Standard` is the truth of every output in its
format, with the bound of the op's named forms; if the challenge is exact, every bit.

**Products that count.** A worst-case bound of a sum of products grows with the number K of its
terms, and a product with a zero factor rounds nothing: adding 0 is exact. So the bound of a sum of
K terms is multiplied by (m + 12) / K, where m of its products are not zero. The bound is
K u P + K h (1 + K u) (`matmul_ref.bounds`), and grows with K alone; with m + 12 terms it holds for
a kernel that takes a product by the three largest of the four products of split floats (3xTF32),
which errs by 3 2^-22 |a b| = 12 u |a b| more, also where K is small. The op itself computes m, from
inputs with ones in place of numbers that are not zero. A formula's bound counts the terms of each
of its sums that are not zero (`contexts.bound`); its products of matrices get the same 12. Outputs
of fewer than 24 bits keep their bound: the rounding of the result outweighs everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.contexts.working import Working
from refkernels.metrology import outputs as answered
from refkernels.metrology.judgement import Weighed, weigh
from refkernels.op import Direction, Op
from refkernels.truth import with_underflow

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
SPLIT = 12.0
_BLOCK = 1 << 12


@dataclass(frozen=True)
class AnswerFault:
    """A fault of one output: `kind` is "missing", "dtype", "shape", "special", "bound", "bits" or
    "invariant"; `wrong` of `elements` are wrong, the first at `index`."""

    kind: str
    output: str
    wrong: int = 0
    elements: int = 0
    index: tuple[int, ...] = ()
    got: str = ""
    right: str = ""
    over_bound: float = 0.0


@dataclass(frozen=True, eq=False)
class Challenge:
    """One question to a kernel. `exact`: every right order of its sums gives the same bits, and
    they are demanded. `plain`: dense arrays with elements."""

    family: str
    name: str
    op: Op
    direction: Direction
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    exact: bool = False
    plain: bool = True
    _standards: dict[tuple[Format, ...], Standard] = field(default_factory=dict, repr=False)

    @property
    def owed(self) -> bool:
        """Whether no kernel may decline it: plain arrays, the op's own params, no masks."""
        masked = any(name in self.op.optional for name in self.inputs.keys() - self.floats.keys())
        return self.plain and not masked and dict(self.params) == dict(self.op.params)

    @cached_property
    def has_answer(self) -> bool:
        """Whether the op has an answer; a mean of no elements has none, nor has an attention whose
        queries have no elements: 0 / 0. This computes the truth."""
        try:
            reference = self.standard().reference
        except (ValueError, TypeError):
            return False
        if any(array.size == 0 for array in self.floats.values()):
            undefined = [bool(np.isnan(exact.hi).all()) for exact in _with_elements(reference)]
            return bool(reference) and not (undefined and all(undefined))
        return bool(reference)

    @property
    def format(self) -> Format:
        """The format of the floating inputs: the narrowest."""
        return min(map(formats.of, self.floats.values()), key=lambda format: format.p)

    @property
    def floats(self) -> dict[str, Array]:
        """The floating inputs that are arrays."""
        return {
            name: array
            for name, array in self.inputs.items()
            if isinstance(array, np.ndarray) and formats.is_one(array.dtype)
        }

    def standard(self, output_formats: Mapping[str, Format] | None = None) -> Standard:
        """The standard, with each output in its format of `output_formats`, else the inputs'."""
        names = self.op.names(self.direction)
        by_name = {name: (output_formats or {}).get(name, self.format) for name in names}
        key = tuple(by_name.values())
        if key not in self._standards:
            self._standards[key] = Standard(self, by_name)
        return self._standards[key]

    def fault(
        self,
        outputs: Mapping[str, Any],
        before: frozenset[str] = frozenset(),
        conventions: Mapping[str, Any] | None = None,
    ) -> AnswerFault | None:
        """The first fault of a kernel's outputs, None if they are right. `before`: the names of the
        outputs that it gave for other inputs; `conventions`: outputs whose special values are right
        as well."""
        names = self.op.names(self.direction)
        arrays = {
            name: np.asarray(outputs[name])
            for name in names
            if isinstance(outputs.get(name), np.ndarray | np.generic)
        }
        if names[0] not in arrays:
            return AnswerFault("missing", names[0])
        for name, got in arrays.items():
            if not formats.is_one(got.dtype):
                return AnswerFault("dtype", name, got=str(got.dtype), right=self.format.name)
            if "low" not in self.op.kinds.values() and not self._fits(name, formats.of(got)):
                return AnswerFault("dtype", name, got=formats.of(got).name, right=self.format.name)
        standard = self.standard({name: formats.of(got) for name, got in arrays.items()})
        missing = [n for n in names if n in before.difference(arrays) and n in standard.reference]
        if missing:
            return AnswerFault("missing", missing[0])
        return standard.fault(arrays, conventions or {})

    def refuses(self, outputs: Mapping[str, Any]) -> bool:
        """Whether the outputs have a fault, found sooner than which."""
        arrays = {n: a for n, a in outputs.items() if isinstance(a, np.ndarray)}
        if arrays.keys() == outputs.keys():
            standard = self.standard({name: formats.of(array) for name, array in arrays.items()})
            if any(standard.clearly_refuses(name, array) for name, array in arrays.items()):
                return True
        return self.fault(outputs) is not None

    def _fits(self, name: str, got: Format) -> bool:
        """Whether a format fits an output: the first one has the inputs' format, or binary32 if
        that has 16 bits; the others are no narrower than the inputs."""
        own = self.format
        if name != self.op.names(self.direction)[0]:
            return got.p >= own.p
        return got == own or (own.storage.itemsize == 2 and got == BINARY32)


class Standard:
    """The truth of a challenge in the formats of a kernel's outputs."""

    def __init__(self, challenge: Challenge, output_formats: Mapping[str, Format]) -> None:
        self.challenge, self.formats = challenge, dict(output_formats)

    @cached_property
    def _asked(self) -> answered.Asked:
        challenge = self.challenge
        return answered.ask(
            challenge.op, challenge.direction, challenge.inputs, challenge.params, self.formats
        )

    @cached_property
    def reference(self) -> dict[str, Enclosure]:
        """The certified answers."""
        return self._asked.reference

    @cached_property
    def bound(self) -> dict[str, Doubles]:
        """The allowed errors."""
        challenge, shares = self.challenge, self._shares()
        bounds = {}
        for name, bound in self._bound.items():
            bounds[name] = np.broadcast_to(bound, self.reference[name].shape)
            if self.formats[name].p >= BINARY32.p and name in challenge.op.sums:
                bounds[name] = np.asarray(bounds[name] * shares.get(name, 1.0))
        return bounds

    @cached_property
    def rounded(self) -> dict[str, Array]:
        """The answers of a kernel that rounds the exact value once."""
        return {n: exact.round(self.formats[n])[0] for n, exact in self.reference.items()}

    @property
    def _bound(self) -> Mapping[str, Doubles]:
        """The bounds of the op's forms, with products of matrices by split floats."""
        challenge = self.challenge
        if challenge.op.formulas is None:
            return self._asked.bound
        question = challenge.direction, challenge.inputs, challenge.params
        by_format = {}
        for format in set(self.formats.values()):
            extra = SPLIT if format.p >= BINARY32.p else 0.0
            bounds = challenge.op.formulas.bound(*question, format, extra)
            by_format[format] = with_underflow(bounds, format, challenge.inputs)
        return {name: by_format[self.formats[name]][name] for name in self.reference}

    def _shares(self) -> dict[str, Any]:
        """(m + 12) / K of each output: see the module's header."""
        challenge = self.challenge
        if not challenge.op.sums:
            return {}
        masks = {name: (array != 0).astype(np.float64) for name, array in challenge.inputs.items()}
        ones = {name: np.ones_like(mask) for name, mask in masks.items()}
        counted, terms = (
            challenge.op.plain(challenge.direction, arrays, challenge.params, BINARY64)
            for arrays in (masks, ones)
        )
        with np.errstate(all="ignore"):
            return {
                n: np.where(terms[n] > 0, (counted[n] + SPLIT) / terms[n], 1.0) for n in counted
            }

    def fault(
        self, outputs: Mapping[str, Array], conventions: Mapping[str, Any]
    ) -> AnswerFault | None:
        """The first fault of outputs in the standard's formats."""
        challenge = self.challenge
        shapes = {name: exact.shape for name, exact in self.reference.items()}
        got = answered.without_kept_axes(challenge.op, challenge.direction, outputs, shapes)
        for name, array in got.items():
            if name not in shapes:
                continue
            if array.shape != shapes[name]:
                return AnswerFault("shape", name, got=str(array.shape), right=str(shapes[name]))
            if fault := self.fault_of(name, array, conventions.get(name)):
                return fault
        return None

    def fault_of(self, name: str, got: Array, convention: Any = None) -> AnswerFault | None:
        """The fault of one output of the right shape; `convention`: another array whose special
        values are right as well."""
        if not got.size:
            return None
        weighed = self._weighed(name, got)
        counts = weighed.summary.counts
        others = self.others.get(name, []) if counts["special_value_mismatches"] else []
        right = self.rounded[name]
        if counts["special_value_mismatches"] and _like(convention, right):
            others = [*others, to_float64(convention)]
            got = np.where(self._without_part(name, got, convention), right, got)
        if others:
            for other in others:
                got = np.where(_same_special(got, other, right), right, got).astype(right.dtype)
            weighed = self._weighed(name, got)
            counts = weighed.summary.counts
        if counts["special_value_mismatches"]:
            wrong, place = counts["special_value_mismatches"], weighed.summary.first_mismatch
            return self._at("special", name, got, wrong, place, weighed)
        if counts["beyond_bound"]:
            wrong, place = counts["beyond_bound"], weighed.summary.worst_ratio
            return self._at("bound", name, got, wrong, place, weighed)
        if self.exact(name):
            right = self.rounded[name]
            differing = ~(
                (got == right) | (np.isnan(to_float64(got)) & np.isnan(to_float64(right)))
            )
            if differing.any():
                return self._at(
                    "bits", name, got, int(differing.sum()), int(np.argmax(differing)), weighed
                )
        if weighed.broken:
            where = self._breaking(weighed.broken[0], got)
            return self._at(
                "invariant", name, got, int(where.sum()), int(np.argmax(where)), weighed
            )
        return None

    def refuses(self, name: str, got: Array) -> bool:
        """Whether an output of the right shape has a fault."""
        return self.clearly_refuses(name, got) or self.fault_of(name, got) is not None

    def clearly_refuses(self, name: str, got: Array) -> bool:
        """Whether some number of an output of the right shape is off by more than twice its bound,
        or is NaN where no form gives NaN: most wrong outputs show it at their beginning."""
        if name not in self.reference or got.shape != self.reference[name].shape:
            return False  # not by its numbers
        exact, bound = self.reference[name], self.bound[name]
        parts = [exact.hi, exact.lo, exact.radius, exact.scale, bound, got]
        hi, lo, radius, scale, limit, numbers = (np.broadcast_to(x, got.shape) for x in parts)
        for index in _blocks(got.shape):
            with np.errstate(all="ignore"):
                factor = np.exp2(np.clip(scale[index], -1100, 1023).astype(np.float64))
                right, number = hi[index] * factor, to_float64(numbers[index])
                error = np.abs((number - right) - lo[index] * factor) - radius[index] * factor
            usual = np.isfinite(right) & np.isfinite(limit[index])
            if np.any(usual & np.isfinite(number) & (error > 2.0 * limit[index])):
                return True
            if np.any(usual & np.isnan(number)) and not self.others.get(name):
                return True
        return False

    def _breaking(self, invariant: str, got: Array) -> npt.NDArray[np.bool_]:
        """Where an output breaks an invariant."""
        challenge = self.challenge
        (broken,) = (
            known
            for known in challenge.op.invariants
            if known.name == invariant and known.direction == challenge.direction
        )
        where = np.asarray(broken.violated(got, challenge.inputs, challenge.params))
        return np.broadcast_to(where, got.shape)

    def exact(self, name: str) -> bool:
        """Whether every right order of sums gives the same bits of an output."""
        challenge = self.challenge
        summed = name in challenge.op.sums or challenge.op.total == "sum"
        return challenge.exact and summed and self._small[name]

    @cached_property
    def _small(self) -> dict[str, bool]:
        """By output, whether the sums of its terms' absolute values stay below 2^p, so that no
        partial sum of these integers rounds. The op itself computes them, from absolute values."""
        challenge = self.challenge
        sizes = {n: np.abs(to_float64(array)) for n, array in challenge.floats.items()}
        largest = challenge.op.plain(
            challenge.direction, {**challenge.inputs, **sizes}, challenge.params, BINARY64
        )
        least = max(challenge.format.p, BINARY32.p)
        return {
            name: bool(np.max(np.abs(array), initial=0.0) < 2.0 ** min(least, 52))
            for name, array in largest.items()
        }

    @cached_property
    def others(self) -> dict[str, list[Array]]:
        """Other right special values: those of the op's conventions and, for infinite inputs, of
        the plain algorithm and of the named forms. There IEEE 754 arithmetic may lead each form to
        another: x Phi(x) at minus infinity is -0, but -inf times 0 is NaN."""
        challenge, answers_of = self.challenge, dict[str, list[Array]]()
        definition, direction = challenge.op.definition, challenge.direction
        question = challenge.inputs, challenge.params, challenge.format
        finite = all(np.isfinite(to_float64(array)).all() for array in challenge.floats.values())
        formulas = [getattr(c, direction) for c in definition.conventions] if definition else []
        if definition and not finite:
            formulas += definition.way(direction).forms.values()
        answers = [] if finite else [challenge.op.plain(direction, *question)]
        answers += [definition.computed(direction, f, *question) for f in formulas if definition]
        if definition and definition.limited and not finite:
            bare = replace(definition, prepare=None)  # -inf times 0 is NaN
            answers += [bare.computed(direction, f, *question) for f in formulas]
        for answer in answers:
            for name, array in answer.items():
                answers_of.setdefault(name, []).append(to_float64(array))
        if finite:
            return answers_of
        if challenge.op.real_function is not None and challenge.direction == "forward":
            x, (name,) = to_float64(challenge.inputs["x"]), challenge.op.outputs
            xp, right = Working(BINARY64), to_float64(self.rounded[name])
            for named in challenge.op.real_function.forms:
                y = named.formula(xp, xp.array(np.where(np.isinf(x), x, 0.0))).data
                answers_of[name].append(np.where(np.isnan(y), y, right))
        return answers_of

    def _without_part(self, name: str, got: Array, convention: Array) -> npt.NDArray[np.bool_]:
        """Where the op gives NaN, but the convention and the answer are right for zeros in place of
        NaN and infinities, which take no part there: a weight that meets the padding."""
        challenge = self.challenge
        zeroed = {
            name: np.where(np.isfinite(to_float64(array)), array, array.dtype.type(0))
            for name, array in challenge.floats.items()
        }
        inputs = {**challenge.inputs, **zeroed}
        standard = Standard(replace(challenge, inputs=inputs, _standards={}), self.formats)
        exact, bound = np.asarray(standard.reference[name]), standard.bound[name]
        near = [np.abs(to_float64(array) - exact) <= bound for array in (got, convention)]
        return np.asarray(near[0] & near[1] & np.isnan(to_float64(self.rounded[name])))

    def _weighed(self, name: str, got: Array) -> Weighed:
        challenge = self.challenge
        return weigh(
            challenge.op, challenge.direction, name, got, self.reference[name],
            bound=self.bound[name], plain=None, inputs=challenge.inputs, params=challenge.params,
            format=self.formats[name], distribution=False,
        )  # fmt: skip

    def _at(
        self, kind: str, name: str, got: Array, wrong: int, place: int | None, weighed: Weighed
    ) -> AnswerFault:
        index = tuple(int(i) for i in np.unravel_index(place or 0, got.shape))
        right = self.rounded[name][index]
        ratio = weighed.summary.max_ratio
        return AnswerFault(
            kind, name, wrong, got.size, index, _text(got[index]), _text(right), ratio
        )


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices of the first axis, of about `_BLOCK` elements each."""
    if not shape:
        yield ()
        return
    rows = max(_BLOCK // max(math.prod(shape[1:]), 1), 1)
    for start in range(0, shape[0], rows):
        yield (slice(start, start + rows),)


def _with_elements(reference: Mapping[str, Any]) -> Iterator[Enclosure]:
    """The enclosures that have elements, those of lists one by one."""
    for exact in reference.values():
        for part in exact if type(exact) is tuple else (exact,):
            if part.hi.size:
                yield part


def _like(array: Any, right: Array) -> bool:
    """Whether an output is an array of numbers of the right shape."""
    return (
        isinstance(array, np.ndarray) and formats.is_one(array.dtype) and array.shape == right.shape
    )


def _same_special(got: Array, other: Array, right: Array) -> npt.NDArray[np.bool_]:
    """Where an answer is that of another form, and differs from the correctly rounded one in being
    NaN, infinite or finite."""
    wide, exact = to_float64(got), to_float64(right)
    if other.shape != exact.shape:
        return np.zeros(exact.shape, np.bool_)
    same = (np.isnan(wide) & np.isnan(other)) | (wide == other)
    other_kind = (np.isnan(other) != np.isnan(exact)) | (np.isinf(other) != np.isinf(exact))
    return np.asarray(same & other_kind)


def _text(value: Any) -> str:
    return f"{float(value):.9g}"
