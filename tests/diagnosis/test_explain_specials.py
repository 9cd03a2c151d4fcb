"""NaN and infinities anywhere in the inputs: right kernels are right, faults keep their names.

REFKERNELS_HUNT multiplies the questions that are drawn.
"""

import warnings
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import HUNT, one_in
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_kernels import layernorm, linear, normal

import refkernels
from refkernels import registry

Array = npt.NDArray[Any]
EXAMPLES = 3 * HUNT
WAYS = [(name, way) for name, op in sorted(registry.ops().items()) for way in op.directions]
DTYPES = ("float32", "bfloat16", "float16", "float64")
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0)
HARMLESS = (None, "summation_order", "bias_first")


@cache
def smallest(op: str, direction: str, dtype: str) -> Any:
    """The op's smallest case with several numbers."""
    cases = registry.get(op).cases()
    built = [
        case.build(dtype)
        for case in cases
        if dtype in case.dtypes and direction in case.directions and case.regime != "specials"
    ]
    sizes = [sum(array.size for array in arrays.values()) for arrays, _ in built]
    return built[min(range(len(sizes)), key=lambda n: (sizes[n] < 10, sizes[n]))]


def inputs_of(
    op: str, direction: str, dtype: str, rng: np.random.Generator
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Ordinary numbers in the shapes of that case, labels as they are; and its params."""
    arrays, params = smallest(op, direction, dtype)
    takes = registry.get(op).takes(direction)  # type: ignore[arg-type]
    inputs = {name: arrays[name] for name in takes if name in arrays}
    return {
        name: array.copy()
        if array.dtype.kind in "iub"
        else rng.standard_normal(array.shape).astype(array.dtype)
        for name, array in inputs.items()
    }, params


def spoilt(inputs: dict[str, Array], rng: np.random.Generator) -> None:
    """Specials at random places of random inputs, and numbers that overflow when squared."""
    wild = (*SPECIALS, 1e30, -1e30, 1e-30)
    for array in (array for array in inputs.values() if array.dtype.kind not in "iub"):
        for _ in range(int(rng.integers(0, 4))):
            with np.errstate(over="ignore"):
                flat = array.reshape(-1)
                flat[rng.integers(flat.size)] = np.asarray(rng.choice(wild)).astype(array.dtype)


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(WAYS), st.sampled_from(DTYPES), st.integers(0, 2**32 - 1))
def test_a_right_kernel_is_right_whatever_specials_its_inputs_have(
    way: tuple[str, Any], dtype: str, seed: int
) -> None:
    (op, direction), rng = way, np.random.default_rng(seed)
    inputs, params = inputs_of(op, direction, dtype, rng)
    spoilt(inputs, rng)
    exact = registry.get(op).evaluate(direction, inputs, params, ("rounding", dtype))
    outputs = {name: value.round(dtype)[0] for name, value in exact.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = refkernels.explain(op, inputs, outputs, params, direction)
    assert explanation.verdict in ("correctly_rounded", "rounding")
    assert explanation.cause in HARMLESS
    assert explanation.summary


PLAIN = {"x": normal(24, 65), "weight": normal(65, seed=1), "bias": normal(65, seed=2)}
PLAIN["x"] *= np.exp(np.random.default_rng(5).uniform(-1, 1, (24, 1))).astype(np.float32)
LAYER = {"x": PLAIN["x"], "weight": normal(30, 65, seed=3), "bias": normal(30, seed=4)}


FAULTS: list[tuple[str | None, str, Any]] = [
    ("eps_differs", "layernorm", partial(layernorm, eps=1e-3)),
    ("eps_differs", "layernorm", partial(layernorm, eps=0.0123)),
    ("unbiased_variance", "layernorm", partial(layernorm, ddof=1)),
    ("missing_bias", "layernorm", lambda x, weight, bias: layernorm(x, weight)),
    ("scale_factor", "layernorm", lambda **a: layernorm(**a) / np.float32(24)),
    ("sign_error", "layernorm", lambda **a: -layernorm(**a)),
    ("permuted", "layernorm", lambda **a: np.roll(layernorm(**a), 5, axis=0)),
    (None, "layernorm", layernorm),
    ("missing_bias", "linear", lambda x, weight, bias: linear(x, weight, 0)),
    ("doubled_bias", "linear", lambda x, weight, bias: linear(x, weight, 2 * bias)),
    ("sign_error", "linear", lambda **a: -linear(**a)),
    ("dropped_tail", "linear", lambda x, weight, bias: linear(x[:, :64], weight[:, :64], bias)),
    (None, "linear", linear),
]


BESIDE = [(fault, value) for fault in FAULTS for value in (np.nan, np.inf, -np.inf)]


@pytest.mark.parametrize(("fault", "value"), one_in(2, BESIDE))
def test_a_fault_keeps_its_name_beside_a_special(fault: Any, value: float) -> None:
    cause, op, kernel = fault
    inputs = dict(LAYER if op == "linear" else PLAIN)
    inputs["x"] = inputs["x"].copy()
    inputs["x"][3, 5] = value
    with np.errstate(invalid="ignore"):
        found = refkernels.explain(op, inputs, {"y": kernel(**inputs)})
    assert found.cause == cause or (cause is None and found.cause in HARMLESS)
