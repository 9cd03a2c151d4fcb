"""No verdict rests on a bound that says nothing, and none blames a right kernel for the range.

Planted answers (0, 1, 123, the negated and the doubled truth) of every op and pass, from tiny to
huge inputs and means: what passes as rounding lies within an eighth of its scale. The plain
algorithm and the named forms, computed in order, are never worse than out of range or
undecided, and are rounding on ordinary data.

REFKERNELS_HUNT tries every op with every size, and sums in pairs, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hunting import HUNT

import refkernels
from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.judging.standard import Challenge
from refkernels.metrology.judgement import Weighed, weigh
from refkernels.op import Direction, Op
from refkernels.range_limits import doubtful_error
from refkernels.records.words import SOUND
from refkernels.testing import IllConditionedWarning, RangeWarning, assert_kernel
from refkernels.truth import Truth

TINY, HUGE = (1e-45, 1e-30, 1e-24), (1e10, 1e19, 1e30, 1e38)
RATIOS = (30.0, 3000.0, 1e5)
ORDERS = ("sequential", "pairwise") if HUNT > 1 else ("sequential",)
UNDECIDED = ("range_limited", "ill_conditioned")
PASSES = [(name, direction) for name, op in registry.ops().items() for direction in op.directions]
FORMAT = formats.BINARY32
X = np.random.default_rng(0).standard_normal((4, 64))


def question(op: Op, direction: Direction = "forward") -> tuple[dict[str, Any], dict[str, Any]]:
    """The smallest case of 16 numbers and more."""
    cases = [
        case.build("float32")
        for case in op.cases()
        if "float32" in case.dtypes and direction in case.directions
    ]
    sizes = [sum(array.size for array in inputs.values()) for inputs, _ in cases]
    inputs, params = cases[min(range(len(cases)), key=lambda i: (sizes[i] < 16, sizes[i]))]
    return inputs, {**op.params, **params}


def of_size(op: Op, inputs: Mapping[str, Any], size: float, ratio: float) -> dict[str, Any]:
    """The first input scaled to a largest number, around a mean of so many of its deviations."""
    first = inputs[op.inputs[0]]
    if not formats.is_one(first.dtype):
        return dict(inputs)
    wide = to_float64(first)
    scaled = (wide / (np.max(np.abs(wide)) or 1.0) + 0.3 * ratio) * size
    return {**inputs, op.inputs[0]: np.clip(scaled, -3e38, 3e38).astype(first.dtype)}


def settings(place: int) -> Iterator[tuple[float, float]]:
    if HUNT > 1:
        yield from ((size, 0.0) for size in (*TINY, *HUGE))
        yield from ((1.0, ratio) for ratio in RATIOS)
    elif (place + place // 2) % 2:  # forward of one op, backward of the next
        yield (TINY + HUGE)[place // 2 % len(TINY + HUGE)], 0.0
    else:
        yield 1.0, RATIOS[place // 2 % len(RATIOS)]
    yield 1.0, 0.0


def weighed(truth: Truth, output: str, got: Any) -> Weighed:
    exact = truth.reference[output]
    with np.errstate(all="ignore"):
        answer = np.broadcast_to(np.asarray(got).astype(np.float32), exact.shape)
    return weigh(
        truth.op, truth.direction, output, answer, exact,
        bound=np.broadcast_to(truth.bound()[output], exact.shape), plain=None,
        inputs=truth.inputs, params=truth.params, format=FORMAT, limits=truth.range_limits(),
    )  # fmt: skip


def right(truth: Truth, output: str) -> Iterator[tuple[str, Any]]:
    """The answers of right kernels."""
    yield "plain", truth.plain()[output]
    formulas = truth.range_limits()._formulas
    if formulas is None:
        return
    parts = truth.inputs, truth.params, FORMAT
    for name, form in formulas.of(truth.direction).forms.items():
        if name.endswith("of_either_side"):
            continue  # it says which slopes are right at a kink
        for order in ORDERS:
            computed = formulas.computed(truth.direction, form, *parts, order=order)[output]
            if truth.op.real_function is not None:  # a slope is a number beyond its domain
                computed = np.where(np.isnan(truth.reference[output].hi), np.nan, computed)
            yield f"{name} {order}", computed


@pytest.mark.parametrize(("name", "direction"), PASSES)
def test_no_vacuous_bound_acquits_and_no_right_kernel_is_blamed(
    name: str, direction: Direction
) -> None:
    op = registry.get(name)
    inputs, params = question(op, direction)
    taken = {key: inputs[key] for key in op.takes(direction) if key in inputs}
    for size, ratio in settings(PASSES.index((name, direction))):
        truth = Truth(op, direction, of_size(op, taken, size, ratio), params, FORMAT)
        for output, exact in truth.reference.items():
            z = np.asarray(exact)
            with np.errstate(all="ignore"):
                plants = {"0": 0.0 * z, "1": z * 0 + 1, "123": z * 0 + 123, "-z": -z, "2z": 2 * z}
            for planted, got in plants.items():
                check_planted(truth, output, got, (planted, size, ratio))
            for kernel, got in right(truth, output):
                verdict = weighed(truth, output, got).verdict
                assert verdict in (*SOUND, *UNDECIDED), (output, kernel, size, ratio)
                if verdict == "range_limited":
                    check_judged(truth, output, got)
                assert (size, ratio) != (1.0, 0.0) or verdict in SOUND, (output, kernel)


def check_planted(truth: Truth, output: str, got: Any, told: Any) -> None:
    exact = truth.reference[output]
    least = doubtful_error(exact, FORMAT)
    if least is None or weighed(truth, output, got).verdict not in SOUND:
        return
    with np.errstate(all="ignore"):
        answer = np.asarray(got).astype(np.float32)
        error = np.abs(to_float64(answer) - np.asarray(exact))
        wrong = answer != exact.round(FORMAT)[0]
    assert not np.any((error > least) & wrong & np.isfinite(exact.hi)), (output, *told)


def check_judged(truth: Truth, output: str, got: Any) -> None:
    """The judge refuses what `assert_kernel` refuses."""
    question = truth.op, truth.direction, truth.inputs, truth.params
    fault = Challenge("hard", "", *question).standard().fault_of(output, got)
    told = pytest.raises(AssertionError, match="range_limited") if fault else nullcontext()
    with warnings.catch_warnings(), told:
        warnings.simplefilter("ignore")
        assert_kernel(truth.op, truth.inputs, {output: got}, truth.params, truth.direction)


def as_float32(values: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32)


@pytest.mark.parametrize(
    ("name", "scale", "answer"),
    [("std", 1e30, np.inf), ("std", 1e-30, 0.0), ("norm", 1e30, np.inf), ("norm", 1e-24, 0.0),
     ("rms_norm", 1e30, 0.0), ("layernorm", 1e30, 0.0)],
)  # fmt: skip
def test_what_the_range_does_is_told_apart_from_rounding(
    name: str, scale: float, answer: float
) -> None:
    inputs = {"x": as_float32(X * scale)}
    shape = X.shape[:1] if name in ("std", "norm") else X.shape
    got = np.full(shape, answer, np.float32)
    with pytest.warns(RangeWarning, match="no named form stays in range"):
        assert_kernel(name, inputs, got)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_kernel(name, inputs, got, allow_overflow=True)
    with pytest.raises(AssertionError, match="range_limited"):
        assert_kernel(name, inputs, got, allow_overflow=False)
    with pytest.raises(AssertionError, match="exceeds_bound"):
        assert_kernel(name, inputs, np.full(shape, 123, np.float32), allow_overflow=True)


@pytest.mark.parametrize(("scale", "answer"), [(1e30, np.inf), (1e-30, 0.0)])
def test_what_the_range_explains_has_no_other_cause(scale: float, answer: float) -> None:
    """Infinities and zeros are what many wrong formulas give as well: they prove none of them."""
    x = as_float32(X * scale)
    explanation = refkernels.explain("std", {"x": x}, np.full(4, answer, np.float32))
    assert (explanation.verdict, explanation.cause) == ("range_limited", None)
    for lang, word in (("en", "unexplained"), ("zh", "原因未明")):
        page = explanation.to_markdown(lang)
        assert word not in page
        assert "two" in page


def test_an_overflow_that_a_named_form_avoids_fails() -> None:
    """The norm of norms underflows where the sum of all squares does not."""
    op = registry.get("clip_by_global_norm")
    inputs, params = question(op)
    grads = of_size(op, inputs, 1e-30, 0.0)
    for name, form in op.formulas.forward.forms.items():
        got = op.formulas.computed("forward", form, grads, params, FORMAT)["clipped"]
        told = Truth(op, "forward", grads, params, FORMAT).range_limits()
        forms = told.forms("clipped", np.ones(got.shape, np.bool_))
        assert name in forms["underflows"] + forms["stays"]
    x = as_float32(X * 1e18)
    params = {"num_groups": 2}
    inputs = {"x": x.reshape(2, 8, 16), "weight": np.ones(8, np.float32)}
    inputs |= {"bias": np.zeros(8, np.float32)}
    got = np.zeros((2, 8, 16), np.float32)
    with pytest.raises(AssertionError, match=r"welford overflows.*centred, divided, folded would"):
        assert_kernel("layernorm", {"x": x}, np.zeros(x.shape, np.float32))
    with pytest.raises(AssertionError, match=r"welford overflows.*centred, folded, mixture would"):
        assert_kernel("group_norm", inputs, got, params)
    assert_kernel("group_norm", inputs, got, params, allow_overflow=True)


def test_a_slope_that_overflows_acquits_the_forms_that_compute_it_alone() -> None:
    """exp(x) is infinite, and dy exp(x) is 1.2e9."""
    inputs = {"dy": as_float32([1e-30, 1e-30]), "x": as_float32([90.0, 1.0])}
    right = 1e-30 * np.exp(inputs["x"].astype(np.float64))
    with pytest.warns(RangeWarning, match="no named form stays in range"):
        assert_kernel("exp", inputs, as_float32([np.inf, right[1]]), direction="backward")
    for wrong in (0.0, 123.0, -right[0], 2.0 * right[0]):
        with pytest.raises(AssertionError, match="exceeds_bound"):
            assert_kernel("exp", inputs, as_float32([wrong, right[1]]), direction="backward")


@pytest.mark.parametrize("answer", ["zeros", "negated"])
def test_a_norm_without_any_digit_is_undecided(answer: str) -> None:
    """Of numbers that float32 holds to a hundredth of their deviation, a mean has no digit."""
    rng = np.random.default_rng(1)
    x = as_float32(rng.standard_normal((2, 16, 64)) + 1e5)
    inputs, params = {"x": x}, {"num_groups": 4}
    exact = np.asarray(registry.get("group_norm").evaluate("forward", inputs, params)["y"])
    got = 0 * exact if answer == "zeros" else -exact
    with pytest.warns(IllConditionedWarning, match="undecided"):
        assert_kernel("group_norm", inputs, as_float32(got), params)


def test_a_nan_for_an_infinite_truth_is_not_undecided() -> None:
    """The bound is infinite there; what is judged are the numbers."""
    inputs = {name: np.ones(8, np.float32) for name in ("param", "grad", "m")}
    inputs["param"][:2] = np.inf
    op = registry.get("lion")
    truth = Truth(op, "forward", inputs, op.params, FORMAT)
    got = np.where(np.isinf(inputs["param"]), np.nan, truth.plain()["param"])
    assert weighed(truth, "param", got).summary.counts["ill_conditioned"] == 0
