"""error / plain: right kernels stay below what sets the flag, in every order and on tensor cores;
sums in 16 bits lie above."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hunting import HUNT, one_in

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.fused import multiply_add
from refkernels.contexts.tensor_cores import CORES, Multiplication
from refkernels.metrology.verdict import UNUSUAL, RmsErrors, worst_errors
from refkernels.truth import Truth

Array = npt.NDArray[np.float32]
DRAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "positive": lambda rng, shape: rng.random(shape),
}
FORMATS = [  # of the inputs, of the result
    ("float32", "float32"),
    ("float64", "float64"),
    ("float16", "float16"),
    ("bfloat16", "bfloat16"),
    ("float16", "float32"),
    ("bfloat16", "float32"),
]


def padded(terms: Array, multiple: int) -> Array:
    rows, k, columns = terms.shape
    tail = np.zeros((rows, -k % multiple, columns), terms.dtype)
    return np.concatenate([terms, tail], axis=1)


def in_order(terms: Array, axis: int) -> Array:
    return np.take(np.add.accumulate(terms, axis=axis, dtype=terms.dtype), -1, axis)


def pairwise(terms: Array) -> Array:
    while terms.shape[1] > 1:
        terms = padded(terms, 2)
        terms = terms[:, 0::2] + terms[:, 1::2]
    return terms[:, 0]


def fused(a: Array, b: Array) -> Array:
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        total = multiply_add(a[:, k, None], b[None, k], total)
    return total


def right_kernels(
    a: Array, b: Array, narrow: bool
) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Products in a's dtype, the sums in each order; on tensor cores for factors of 16 bits."""
    m, n = a.shape[0], b.shape[1]
    terms = a[:, :, None] * b[None]
    yield "sequential", in_order(terms, 1)
    yield "reversed", in_order(terms[:, ::-1], 1)
    yield "pairwise", pairwise(terms)
    yield "blocked", in_order(in_order(padded(terms, 128).reshape(m, -1, 128, n), 2), 1)
    yield "split-K", in_order(in_order(padded(terms, 8).reshape(m, 8, -1, n), 2), 1)
    yield "lanes", in_order(in_order(padded(terms, 16).reshape(m, -1, 16, n), 1), 1)
    yield "FMA", fused(a, b)
    for name, core in CORES.items() if narrow else ():
        yield name, Multiplication(core).product(a.astype(np.float64), b.T.astype(np.float64))


def accumulated_in_16_bits(a: Array, b: Array, format: formats.Format) -> Array:
    """As a matrix instruction with an accumulator of 16 bits: 16 exact products at a time."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(0, a.shape[1], 16):
        total += a[:, k : k + 16].astype(np.float64) @ b[k : k + 16].astype(np.float64)
        total = formats.round_to(total, format).astype(np.float64)
    return total.astype(np.float32)


def question(
    shape: tuple[int, int, int], data: str, inputs: str, result: str, seed: int
) -> tuple[Truth, Array, Array]:
    m, k, n = shape
    rng, format = np.random.default_rng([*shape, seed]), formats.get(inputs)
    # Sums stay far below float16's largest number.
    scale = k**-0.25 if inputs == "float16" else 1.0
    a, b = (formats.round_to(DRAWS[data](rng, of) * scale, format) for of in ((m, k), (k, n)))
    truth = Truth(registry.get("matmul"), "forward", {"a": a, "b": b}, {}, formats.get(result))
    working = np.float64 if inputs == "float64" else np.float32
    return truth, a.astype(working), b.astype(working)


def compared(truth: Truth, answer: npt.NDArray[np.floating]) -> RmsErrors | None:
    got = formats.round_to(answer.astype(np.float64), truth.format)
    return worst_errors(got, truth.right("c"), truth.reference["c"], truth.format, False)


@pytest.mark.parametrize(
    ("k", "data", "inputs", "result"),
    one_in(
        5, [(k, data, *pair) for k in (64, 1024, 4096, 16384) for data in DRAWS for pair in FORMATS]
    ),
)
def test_right_kernels_are_below_and_accumulators_of_16_bits_above(
    k: int, data: str, inputs: str, result: str
) -> None:
    truth, a, b = question((6, k, 5), data, inputs, result, 0)
    narrow = formats.get(inputs).p <= 11
    for name, answer in right_kernels(a, b, narrow):
        errors = compared(truth, answer)
        assert errors is None or not errors.unusual, (name, errors)
    if narrow and k >= 1024:
        errors = compared(truth, accumulated_in_16_bits(a, b, formats.get(inputs)))
        assert errors is not None
        assert errors.unusual, errors


@pytest.mark.parametrize(("inputs", "result"), FORMATS)
@pytest.mark.parametrize("columns", [1, 3])
def test_the_luck_of_a_few_elements_makes_no_right_kernel_unusual(
    columns: int, inputs: str, result: str
) -> None:
    """In one order of summation a single sum is exact by luck; another order is none the worse.
    Chance is left less than one in a thousand."""
    tried, flagged = 0, []
    for seed, k in np.ndindex(40 * HUNT if HUNT > 1 else 20, 6):
        shape = (1, (2, 3, 4, 8, 64, 300)[k], columns)
        truth, a, b = question(shape, "normal", inputs, result, seed)
        for name, answer in right_kernels(a, b, formats.get(inputs).p <= 11):
            errors = compared(truth, answer)
            flagged += [(name, shape, seed)] if errors is not None and errors.unusual else []
            tried += 1
    assert len(flagged) * 1000 < tried, flagged


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_rounding_costs_an_ulp_over_the_root_of_12(dtype: str) -> None:
    """A correctly rounded answer is never unusual, not even a single one; nor is a faithful one in
    float32 and float64."""
    format = formats.get(dtype)
    truth, *_ = question((1, 2, 400), "normal", dtype, dtype, 0)
    exact = truth.reference["c"]
    errors = compared(truth, exact.round(format)[0])
    assert errors is not None
    assert errors.own / errors.rounding == pytest.approx(1.0, rel=0.1)
    assert errors.allowed == (UNUSUAL / 2 if format.p <= 11 else UNUSUAL)
    assert errors.allowed > (3.0**0.5 if format.p <= 11 else 12.0**0.5)
