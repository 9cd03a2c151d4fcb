"""A factor that many causes give is known, and none of these causes is."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hunting import HUNT, one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis.multiples import common

LARGEST = 1 << 10  # elements of all inputs
TRIED = 7 if HUNT == 1 else 1000  # small cases for a fault and a direction, until one shows it


def multiples() -> Iterator[tuple[str, str, Any, Any, Any, Any, float]]:
    """Every fault of every op that multiplies an output by 2, 1/8, 32, ...: op, direction, inputs,
    params, cause, the wrong outputs, and the factor."""
    for name, op in registry.ops().items():
        asked: dict[tuple[str, str], Any] = {}  # what all faults of the op are compared with
        for fault in op.formulas.faults if op.formulas else ():
            for direction in op.directions:
                formula = getattr(fault, direction)
                if formula is None or fault.unstable:
                    continue
                tried = 0
                for case in op.cases():
                    if direction not in case.directions:
                        continue
                    if tried == TRIED:
                        break
                    if (direction, case.name) not in asked:
                        asked[direction, case.name] = question(op, direction, case)
                    if asked[direction, case.name] is None:
                        continue
                    tried += 1
                    inputs, params, right = asked[direction, case.name]
                    outputs, factor = changed(op, direction, formula, fault, inputs, params, right)
                    if factor is not None:
                        yield name, direction, inputs, params, fault.cause, outputs, factor
                        break


def question(op: Any, direction: Any, case: Any) -> tuple[Any, Any, Any] | None:
    """A small case's inputs, its params and right outputs."""
    built, params = case.build("float32")
    inputs = {name: built[name] for name in op.takes(direction) if name in built}
    if sum(np.size(array) for array in inputs.values()) > LARGEST:
        return None
    with np.errstate(all="ignore"):
        return inputs, params, op.plain(direction, inputs, params, "float64")


def changed(
    op: Any, direction: Any, formula: Any, fault: Any, inputs: Any, params: Any, right: Any
) -> tuple[Any, float | None]:
    """The outputs of a fault, and its factor if the fault is one with many reasons."""
    with np.errstate(all="ignore"):
        computed = op.formulas.computed(direction, formula, inputs, params, "float64")
        wrong = right | fault.changed(computed)
        factors = set()
        for name, got in wrong.items():
            if got.shape != right[name].shape or not np.isfinite(got).all():
                return {}, None
            if np.array_equal(got.astype(np.float32), right[name].astype(np.float32)):
                continue
            away = right[name] != 0.0
            ratio = got[away] / right[name][away]
            sizes = np.unique(np.abs(right[name][away]).astype(np.float32)).size
            if np.any(got[~away]) or sizes < 8 or np.ptp(ratio) > 1e-9 * np.abs(ratio[0]):
                return {}, None
            factors.add(float(np.median(ratio)))
    if len(factors) != 1:
        return {}, None
    (factor,) = factors
    reason = common(factor * (1 - 1e-8), factor * (1 + 1e-8))
    rounded = {name: array.astype(np.float32) for name, array in wrong.items()}
    return rounded, None if reason == 1.0 else reason


def test_a_factor_with_many_reasons_proves_no_cause() -> None:
    examined = 0
    for op, direction, inputs, params, cause, outputs, factor in one_in(3, multiples()):
        explanation = refkernels.explain(op, inputs, outputs, params, direction)
        if explanation.verdict in ("rounding", "correctly_rounded"):
            continue  # float64 has no right answer there
        if explanation.verdict == "range_limited":  # of squares that are infinite
            assert np.abs(inputs["x"]).max() > 2.0**64
            continue
        examined += 1
        place, best = (op, direction, cause, factor), explanation.candidates[0]
        assert (explanation.cause, explanation.confidence) == ("scale_factor", "proven"), place
        assert best.evidence is not None
        assert cause in best.evidence.survivors, place
        low, high = best.details["interval"]
        assert low <= factor <= high, place
        assert "or because something else multiplies it" in explanation.summary
    assert examined >= 6


def test_a_gradient_that_is_right_beside_it_proves_the_cause_of_a_factor() -> None:
    """Gradients of attention that lack 1 / sqrt(16) = 1/4 in dq and dk, as they should not."""
    rng = np.random.default_rng(5)
    shapes = {"q": (8, 5, 16), "k": (8, 6, 16), "v": (8, 6, 16), "dy": (8, 5, 16)}
    inputs = {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    right = registry.get("attention").plain("backward", inputs, {}, "float32")
    two = {**right, "dq": 4 * right["dq"], "dk": 4 * right["dk"]}
    one, every = {"dq": two["dq"]}, {**two, "dv": 4 * two["dv"]}
    for outputs in two, one, every:
        explanation = refkernels.explain("attention", inputs, outputs, {}, "backward")
        cause = "gradient_unscaled" if outputs is two else "scale_factor"
        assert (explanation.cause, explanation.confidence) == (cause, "proven")


def test_a_first_step_cannot_separate_an_averaged_momentum_from_a_tenth_of_the_gradient() -> None:
    rng = np.random.default_rng(6)
    param, grad = (rng.standard_normal(64).astype(np.float32) for _ in range(2))
    inputs = {"param": param, "grad": grad, "buf": np.zeros_like(param)}
    params = {"lr": 0.5, "momentum": 0.9}
    buf = (grad * 0.1).astype(np.float32)
    for outputs in ({"buf": buf}, {"param": param - np.float32(0.5) * buf, "buf": buf}):
        explanation = refkernels.explain("momentum", inputs, outputs, params)
        assert (explanation.cause, explanation.confidence) == ("scale_factor", "proven")
        unsure = {c.cause for c in explanation.candidates if c.confidence == "consistent"}
        assert {"averaged_momentum", "gradient_multiplied"} <= unsure


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [
        (7.9999, 8.0001, 8.0), (8.0, 8.0, 8.0), (0.1249, 0.1251, 0.125), (1.9, 2.1, 2.0),
        (65535.9, 65536.1, 65536.0), (2.0**-20 * 0.999, 2.0**-20 * 1.001, 2.0**-20),
        (26.77, 26.78, None), (0.718, 0.719, None), (-8.0001, -7.9999, None),
        (4097.9, 4098.1, None), (0.0, 3.0, None),
        (1.0, 1.0, 1.0), (1.0 + 2e-14, 1.0 + 3e-14, None), (1.0 - 3e-14, 1.0 - 2e-14, None),
        (0.1666666716, 0.1666666717, 1.0 / 6.0), (1.0 / 3.0 - 1e-9, 1.0 / 3.0 + 1e-9, 1.0 / 3.0),
    ],
)  # fmt: skip
def test_integers_their_reciprocals_and_powers_of_two_have_many_reasons(
    low: float, high: float, number: float | None
) -> None:
    assert common(low, high) == number
