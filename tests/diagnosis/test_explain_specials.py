"""NaN and infinities anywhere in the inputs: right kernels are right, faults keep their names.

REFKERNELS_HUNT multiplies the questions that are drawn.
"""

import functools
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st

import refkernels
from refkernels import registry

Array = npt.NDArray[Any]
EXAMPLES = 3 * HUNT
WAYS = [(name, way) for name, op in sorted(registry.ops().items()) for way in op.directions]
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0)
HARMLESS = (None, "summation_order", "bias_first")


@functools.cache
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


def spoilt(inputs: dict[str, Array], rng: np.random.Generator, few: bool = False) -> None:
    """Specials at random places of random inputs, and numbers that overflow when squared."""
    wild = (*SPECIALS, 1e30, -1e30, 1e-30)
    for array in (array for array in inputs.values() if array.dtype.kind not in "iub"):
        for _ in range(1 if few else int(rng.integers(0, 4))):
            with np.errstate(over="ignore"):
                flat = array.reshape(-1)
                flat[rng.integers(flat.size)] = np.asarray(rng.choice(wild)).astype(array.dtype)


questions = st.tuples(
    st.sampled_from(WAYS),
    st.sampled_from(("float32", "bfloat16", "float16", "float64")),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=EXAMPLES)
@given(questions)
def test_a_right_kernel_is_right_whatever_specials_its_inputs_have(question: Any) -> None:
    (op, direction), dtype, seed = question
    rng = np.random.default_rng(seed)
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


@settings(max_examples=EXAMPLES)
@given(questions, st.integers(0, 2**32 - 1))
def test_a_wrong_kernel_is_answered_whatever_specials_it_has(question: Any, noise: int) -> None:
    (op, direction), dtype, seed = question
    rng = np.random.default_rng(seed)
    inputs, params = inputs_of(op, direction, dtype, rng)
    spoilt(inputs, rng)
    exact = registry.get(op).evaluate(direction, inputs, params, ("rounding", dtype))
    outputs = {name: value.round(dtype)[0] for name, value in exact.items()}
    spoilt(outputs, np.random.default_rng(noise))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = refkernels.explain(op, inputs, outputs, params, direction)
    assert explanation.to_markdown("en")
    assert explanation.to_markdown("zh")


def rows_with(value: float) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    inputs = {
        "x": rng.standard_normal((24, 65)) * np.exp(rng.uniform(-1, 1, (24, 1))),
        "weight": 1 + 0.5 * rng.standard_normal(65),
        "bias": rng.standard_normal(65),
    }
    inputs["x"][3, 5] = value
    return {name: array.astype(np.float32) for name, array in inputs.items()}


def layernorm(inputs: dict[str, Array], eps: float = 1e-5, ddof: int = 0) -> Array:
    x, weight, bias = inputs.values()
    with np.errstate(invalid="ignore"):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.sum(centred * centred, axis=1, keepdims=True) / np.float32(65 - ddof)
        result: Array = centred / np.sqrt(variance + np.float32(eps)) * weight + bias
    return result


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_fault_of_layernorm_keeps_its_name_beside_a_special(value: float) -> None:
    inputs = rows_with(value)
    order = np.roll(np.arange(24), 5)
    right = layernorm(inputs)
    assert not np.isfinite(right[3]).any()
    assert refkernels.explain("layernorm", inputs, {"y": right}).cause in HARMLESS
    faults = {
        "eps_differs": layernorm(inputs, eps=1e-3),
        "unbiased_variance": layernorm(inputs, ddof=1),
        "missing_bias": layernorm({**inputs, "bias": 0 * inputs["bias"]}),
        "scale_factor": right / np.float32(24),
        "sign_error": -right,
        "permuted": right[order],
    }
    for cause, y in faults.items():
        assert refkernels.explain("layernorm", inputs, {"y": y}).cause == cause
    odd = layernorm(inputs, eps=0.0123)
    explanation = refkernels.explain("layernorm", inputs, {"y": odd})
    assert explanation.cause == "eps_differs"
    assert explanation.candidates[0].details["eps"] == pytest.approx(0.0123, rel=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_fault_of_linear_keeps_its_name_beside_a_special(value: float) -> None:
    rng = np.random.default_rng(6)
    shapes = {"x": (24, 65), "weight": (30, 65), "bias": (30,)}
    inputs = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    inputs["x"][3, 5] = value
    x, weight, bias = inputs.values()
    with np.errstate(invalid="ignore"):
        product = x @ weight.T
        short = x[:, :64] @ weight[:, :64].T + bias
    faults = {
        "missing_bias": product,
        "doubled_bias": product + bias + bias,
        "sign_error": -(product + bias),
        "dropped_tail": short,
    }
    assert refkernels.explain("linear", inputs, {"y": product + bias}).cause in HARMLESS
    for cause, y in faults.items():
        assert refkernels.explain("linear", inputs, {"y": y}).cause == cause
