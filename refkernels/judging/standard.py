"""The standard that an answer to a challenge must meet.

The `Standard` of a `Challenge` is its truth in the format of an output, with the bound of the op's
named forms; if the challenge is exact, every bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.contexts.working import RoundedArithmetic
from refkernels.judging.judgement import Reason
from refkernels.judging.questions import is_float
from refkernels.metrology import outputs as answered
from refkernels.metrology.avoidable import avoidable, needs_asking
from refkernels.metrology.judgement import Weighed, weigh
from refkernels.metrology.no_part import with_nan
from refkernels.metrology.permitted import beyond
from refkernels.op import Direction, Op
from refkernels.ops.formulas import Formulas
from refkernels.programs.spread import Traced
from refkernels.range_limits import doubtful_error
from refkernels.truth import Truth, with_underflow

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
SPLIT = 12.0
"""Terms added to those of a bound that are not 0: the three largest of four products of split
floats (3xTF32) err by 3 2^-22 |a b| = 12 u |a b| more. Below 24 bits rounding outweighs it."""
MANY = 1 << 14
"""Numbers of an output from which on forms are read one by one."""
RANGE = ("wrong_range", "wrong_avoidable_range")
"""Faults of elements that an overflow or underflow on the way to them decides: in every named form,
and in some."""


@dataclass(frozen=True, eq=False)
class Challenge:
    """One question to a kernel, with the standard of its answer. `exact`: every right order of its
    sums gives the same bits, and they are demanded. `allow_overflow`: as for `judge`."""

    family: str
    name: str
    op: Op
    direction: Direction
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    exact: bool = False
    allow_overflow: bool | None = None
    _standards: dict[Format, Standard] = field(default_factory=dict, repr=False)

    @property
    def first_output(self) -> str:
        return self.op.names(self.direction)[0]

    @property
    def plain(self) -> bool:
        """Whether its arrays are dense, of usual lengths, and have elements."""
        usual = self.family not in ("hard", "strides", "wide", "long")
        return usual and all(a.size for a in self.inputs.values() if isinstance(a, np.ndarray))

    @property
    def owed(self) -> bool:
        """Whether no kernel may decline it: plain arrays, the op's own params, no masks."""
        masked = any(name in self.op.optional for name in self.inputs.keys() - self.floats.keys())
        return self.plain and not masked and dict(self.params) == dict(self.op.params)

    @property
    def format(self) -> Format:
        """The format of the floating inputs: the narrowest; of a program without them its own."""
        given = [formats.of(array) for array in self.floats.values()]
        return min(given or [formats.get(self.op.whole)], key=lambda format: format.p)

    @property
    def floats(self) -> dict[str, Array]:
        """The floating inputs that are arrays."""
        return {name: array for name, array in self.inputs.items() if is_float(array)}

    @cached_property
    def finite(self) -> bool:
        """Whether no input has a NaN or an infinity."""
        return all(np.isfinite(to_float64(array)).all() for array in self.floats.values())

    def right_answers(self) -> Iterator[Mapping[str, Array]]:
        """Those of the plain algorithm and of the op's named forms."""
        question = self.inputs, self.params, self.format
        yield self.op.plain(self.direction, *question)
        if (known := self.op.definition) is not None:
            for form in known.of(self.direction).forms.values():
                yield known.computed(self.direction, form, *question)

    @cached_property
    def has_answer(self) -> bool:
        """Whether the op has an answer; a mean of no elements has none, nor has an attention whose
        queries have no elements: 0 / 0. This computes the truth."""
        try:
            reference = self.standard().reference
        except (ValueError, TypeError):
            return False
        if any(array.size == 0 for array in self.floats.values()):
            lists = (exact if type(exact) is tuple else (exact,) for exact in reference.values())
            parts = [part.hi for exacts in lists for part in exacts if part.hi.size]
            return not parts or not all(np.isnan(part).all() for part in parts)
        return bool(reference)

    def standard(self, format: Format | None = None) -> Standard:
        """The standard of outputs in this format, by default that of the inputs."""
        target = format or self.format
        if target not in self._standards:
            question = self.op, self.direction, self.inputs, self.params, target
            self._standards[target] = Standard(*question, self)
        return self._standards[target]

    def standards(self, outputs: Mapping[str, Array]) -> dict[str, Standard]:
        """Those of the outputs that have a right value, each in its format."""
        by_name = {name: self.standard(formats.of(got)) for name, got in outputs.items()}
        return {n: standard for n, standard in by_name.items() if n in standard.reference}

    def fault(
        self, outputs: Mapping[str, Any], before: frozenset[str] = frozenset()
    ) -> Reason | None:
        """The first fault of a kernel's outputs, None if they are right: "wrong_missing", of a
        dtype, a shape, a "special" value, a "bound", of "bits", an "invariant" or, if there is no
        other, one of `RANGE`. `before`: the outputs that it gave for other inputs."""
        names, outputs = self.op.names(self.direction), self.op.widened(outputs)
        listed = ((name, outputs.get(name)) for name in names)
        arrays = {n: np.asarray(a) for n, a in listed if isinstance(a, np.ndarray | np.generic)}
        if self.first_output not in arrays:
            return self.reason("missing", self.first_output)
        for name, got in arrays.items():
            told = formats.of(got) if formats.is_one(got.dtype) else None
            if told is None or not (self.op.any_format or self._fits(name, told)):
                given = str(got.dtype) if told is None else told.name
                return self.reason("dtype", name, got=given, right=self.format.name)
        standards = self.standards(arrays)
        reference = self.standard(formats.of(arrays[names[0]])).reference
        owed = {n for n in reference if n not in self.op.gradients or n[1:] in self.inputs}
        if missing := [name for name in names if name in before.difference(arrays) & owed]:
            return self.reason("missing", missing[0])
        shapes, limited = {n: exact.shape for n, exact in reference.items()}, None
        known = {name: array for name, array in arrays.items() if name in standards}
        without = answered.without_kept_axes(self.op, self.direction, known, shapes)
        for name, got in without.items():
            if got.shape != shapes[name]:
                both = {"got": str(got.shape), "right": str(shapes[name])}
                return self.reason("shape", name, **both)
            fault = standards[name].fault_of(name, got)
            if fault and fault.kind not in RANGE:
                return fault
            limited = limited or fault
        return limited

    def given(self, changed: Mapping[str, Any], **fields: Any) -> Challenge:
        """The question with other inputs of these names."""
        return replace(self, inputs={**self.inputs, **changed}, _standards={}, **fields)

    def reason(self, kind: str, output: str, **details: Any) -> Reason:
        """A fault of an output."""
        return Reason(f"wrong_{kind}", self.name, {"output": output, **details})

    def remarks(
        self, outputs: Mapping[str, Array], measured: bool
    ) -> tuple[list[str], dict[str, Any] | None]:
        """What decides elements of right outputs besides rounding: "range_limited",
        "ill_conditioned". And, if it is `measured`, the first output whose errors another form of
        the op avoids, with how many elements err how much more than which form."""
        words, better = set[str](), None
        for name, standard in self.standards(outputs).items():
            got, exact = outputs[name], standard.reference[name]
            if got.shape != exact.shape:
                continue
            summary = standard.settled(name, got)[1].summary
            words |= {w for w in ("range_limited", "ill_conditioned") if summary.counts[w]}
            if measured and better is None and needs_asking(summary):
                found = avoidable(got, exact, standard.format, standard.attainable(name))
                counts = {**summary.counts, "avoidable": found.elements if found else 0}
                better = found and {
                    "challenge": self.name, "output": name, "format": standard.format.name,
                    "counts": counts, "bound": {"better": found.record},
                }  # fmt: skip
        return sorted(words), better

    @cached_property
    def fair(self) -> bool:
        """Whether the op's plain algorithm and its named forms are right here, as far as they stay
        in the format's range. Where one is not, no kernel's answer shows anything."""
        faults = map(self.fault, self.right_answers())
        return all(fault is None or fault.kind in RANGE for fault in faults)

    def _fits(self, name: str, got: Format) -> bool:
        """Whether a format fits an output: the first one has the inputs' format, or binary32 if
        that has 16 bits; the others are no narrower than the inputs."""
        own = self.format
        if name != self.first_output:
            return got.p >= own.p
        return got == own or (own.storage.itemsize == 2 and got == BINARY32)


@dataclass(frozen=True, eq=False)
class Standard(Truth):
    """The truth of a challenge in the format of outputs. Its bound allows for products of split
    floats."""

    challenge: Challenge
    _settled: dict[str, tuple[bytes, Array, Weighed]] = field(default_factory=dict, init=False)

    @property
    def definition(self) -> Formulas | None:
        """The named forms that bound the op's errors; None for one with a bound of its own."""
        return self.op.definition if self.op.formulas is not None or self.op.sums else None

    @cached_property
    def reach_of_first(self) -> Mapping[str, Doubles] | None:
        """`reach` of the first form; None where all forms have been read, or bound nothing."""
        if self.definition is None or self._bounds:
            return None
        return with_underflow(self._bound_in(self.format, True), self.format, self.inputs)

    def _bound_in(self, format: Format, first: bool = False) -> Mapping[str, Doubles]:
        if (known := self.definition) is None:
            return super()._bound_in(format)
        read = partial(known.bounded, formula=known.first(self.direction)) if first else known.bound
        question: dict[str, Any] = {"inputs": self.inputs, "params": self.params, "format": format}
        return read(self.direction, **question, extra=SPLIT if format.p >= BINARY32.p else 0.0)

    def _bound_of(self, name: str, got: Array) -> Doubles:
        """The allowed errors of an output; where they suffice for many numbers, those of the first
        form, which is read sooner than all."""
        exact = self.reference[name]
        if got.size >= MANY and (first := self.reach_of_first) is not None:
            near, least = first[name], doubtful_error(exact, self.format)
            inside = ~beyond(got, exact, near, self.format)
            if least is not None and np.all(inside & (near <= least)):
                return near
        return self.bound()[name]

    @cached_property
    def rounded(self) -> dict[str, Array]:
        """The answers of a kernel that rounds the exact value once."""
        return {name: exact.round(self.format)[0] for name, exact in self.reference.items()}

    def settled(self, name: str, given: Array) -> tuple[Array, Weighed]:
        """An output of the right shape, with the right value in the place of another right special
        value, and the basis of its verdict."""
        if (known := self._settled.get(name)) and known[0] == given.tobytes():
            return known[1:]
        question = self.op, self.direction, name, given, self.reference[name]
        got = with_nan(*question, self.inputs, self.params)
        weighed = self._weighed(name, got)
        counts = weighed.summary.counts
        doubtful = counts["special_value_mismatches"] or counts["range_limited"]
        if doubtful and (others := self.others.get(name)):
            right = self.rounded[name]
            for other in others:
                got = np.where(_of_another_form(got, other, right), right, got).astype(right.dtype)
            weighed = self._weighed(name, got)
        self._settled[name] = given.tobytes(), got, weighed
        return got, weighed

    def refuses(self, name: str, got: Array) -> bool:
        """Whether `fault_of` finds one: sooner, where a bound that no range widens is exceeded."""
        bound, known = self.bound()[name], self.op.formulas is not None
        usual = known & np.isfinite(to_float64(got)) & (self.reach()[name] <= bound)
        outside = usual & beyond(got, self.reference[name], bound, self.format)
        return bool(outside.any()) or self.fault_of(name, got) is not None

    def fault_of(self, name: str, got: Array) -> Reason | None:
        """The fault of one output of the right shape, at the first wrong element or at the worst,
        with its error as a multiple of its bound; for elements out of range, the named forms that
        stay in range."""
        if not got.size:
            return None
        got, weighed = self.settled(name, got)
        summary, right, allowed = weighed.summary, self.rounded[name], self.challenge.allow_overflow

        def fault(kind: str, where: Any, place: int | None = None, form: str = "") -> Reason:
            found = wrong_element(got, right, int(np.sum(where)), place or int(np.argmax(where)))
            over = {"over_bound": summary.max_ratio, "form": form}
            return self.challenge.reason(kind, name, **found, **over)

        if mismatches := summary.counts["special_value_mismatches"]:
            return fault("special", mismatches, summary.first_mismatch)
        if outside := summary.counts["beyond_bound"]:
            return fault("bound", outside, summary.worst_ratio)
        differing = (got != right) & ~(np.isnan(to_float64(got)) & np.isnan(to_float64(right)))
        if differing.any() and name in self.exact:
            return fault("bits", differing)
        if weighed.broken:
            return fault("invariant", weighed.where)
        if summary.counts["range_limited"] and allowed is not True:
            where = weighed.out_of_range
            stays = "; ".join(self.range_limits().forms(name, where)["stays"])
            if stays or allowed is False:
                return fault("avoidable_range" if stays else "range", where, form=stays)
        return None

    @cached_property
    def exact(self) -> set[str]:
        """The outputs of which every right order of sums gives the same bits: the sums of their
        terms' absolute values, which the op itself computes, stay below 2^p, so that no partial sum
        of these integers rounds."""
        asked, op = self.challenge, self.op
        if not asked.exact:
            return set()
        sizes = {n: np.abs(to_float64(array)) for n, array in asked.floats.items()}
        sums = op.plain(self.direction, {**self.inputs, **sizes}, self.params, BINARY64)
        limit = 2.0 ** min(max(asked.format.p, BINARY32.p), 52)
        below = {n for n, array in sums.items() if np.max(np.abs(array), initial=0.0) < limit}
        return {name for name in below if name in op.sums or op.total == "sum"}

    @cached_property
    def others(self) -> dict[str, list[Array]]:
        """Other right special values: those of the op's conventions and, for infinite inputs, of
        the plain algorithm and of the named forms. There IEEE 754 arithmetic may lead each form to
        another: x Phi(x) at minus infinity is -0, but -inf times 0 is NaN. A program has one form:
        there either infinity is right for NaN, as in log(sum(exp(x))) - x of an infinite row."""
        asked, question = self.challenge, (self.inputs, self.params)
        known, way = self.op.definition, self.direction
        conventions = [getattr(c, way) for c in known.conventions] if known else []
        answers: list[Mapping[str, Any]] = []
        if known:
            answers += [known.computed(way, f, *question, asked.format) for f in conventions]
        if not asked.finite:
            answers += asked.right_answers()
            forms = [*known.of(way).forms.values()] if known else []
            if known and known.limited:
                bare = replace(known, prepare=None)  # -inf times 0 is NaN
                all_forms = conventions + forms
                answers += [bare.computed(way, f, *question, asked.format) for f in all_forms]
            infinite = any(np.isinf(to_float64(array)).any() for array in asked.floats.values())
            right = {name: to_float64(array) for name, array in self.rounded.items()}
            if infinite and any(isinstance(form, Traced) for form in forms):
                for end in (np.inf, -np.inf):
                    answers.append({n: np.where(np.isnan(a), end, a) for n, a in right.items()})
            if self.op.real_function is not None and way == "forward":
                x, xp = to_float64(self.inputs["x"]), RoundedArithmetic(BINARY64)
                for named in self.op.real_function.forms:
                    y = named.formula(xp, xp.array(np.where(np.isinf(x), x, 0.0))).data
                    answers += [{n: np.where(np.isnan(y), y, a)} for n, a in right.items()]
        names = {name for answer in answers for name in answer}
        return {n: [to_float64(answer[n]) for answer in answers if n in answer] for n in names}

    def _weighed(self, name: str, got: Array) -> Weighed:
        return weigh(
            self.op, self.direction, name, got, self.reference[name],
            bound=self._bound_of(name, got), plain=None, inputs=self.inputs, params=self.params,
            format=self.format, distribution=False, limits=self.range_limits(),
        )  # fmt: skip


def _of_another_form(got: Array, other: Array, right: Array) -> npt.NDArray[np.bool_]:
    """Where an answer is that of another form, and differs from the correctly rounded one in being
    NaN, infinite or finite."""
    wide, exact = to_float64(got), to_float64(right)
    if other.shape != exact.shape:
        return np.zeros(exact.shape, np.bool_)
    equal = (np.isnan(wide) & np.isnan(other)) | (wide == other)
    other_kind = (np.isnan(other) != np.isnan(exact)) | (np.isinf(other) != np.isinf(exact))
    return np.asarray(equal & other_kind)


def wrong_element(got: Array, right: Array, wrong: int, place: int) -> dict[str, Any]:
    """How many elements are wrong, and the one at a flat index."""
    index = [int(i) for i in np.unravel_index(place, got.shape)]
    texts = {k: f"{float(a[(*index,)]):.9g}" for k, a in (("got", got), ("right", right))}
    return {"wrong": wrong, "elements": got.size, "index": index, **texts}
