"""Generated kernels: Arb lies in their balls, whose mids have the bits of NumPy's.

REFKERNELS_HUNT multiplies the number of random formulas, each of which is compiled.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numba
import numpy as np
import pytest
from context_formulas import (
    adamw,
    cross_entropy,
    gelu,
    hardswish,
    layer_norm,
    log_softmax,
    pulled,
    rms_norm,
    softmax,
)
from context_rules import doubles, outside
from hunting import HUNT

from refkernels.arithmetic import jit
from refkernels.contexts import Arb, Ball, generated, loading
from refkernels.contexts.context import FUNCTIONS
from refkernels.contexts.generated import arguments, outputs_of
from refkernels.contexts.graph import Untraceable

B = Ball()


def functions(xp: Any, x: Any) -> Any:
    """Every function and every choice, of all numbers for which it is defined."""
    square = xp.square(x)
    positive = {"sqrt": square, "rsqrt": square, "log": square, "log1p": square - 1}
    values = [xp.function(name, positive.get(name, x)) for name in FUNCTIONS]
    third = x / 3
    chosen = xp.where(third < xp.number(1), xp.maximum(x, third), abs(third) * xp.pi())
    return [*values, gelu(xp, x), chosen, xp.clip(x, -1, 2), xp.power(x, -3)]


def several(xp: Any, x: Any) -> Any:
    """What a row's loops share."""
    return softmax(xp, x), log_softmax(xp, x), hardswish(xp, x), xp.max(x / 3)


def picked(xp: Any, x: Any, index: Any) -> Any:
    """One element of each row: of an input, of what is computed, and of what is kept."""
    y = softmax(xp, x)
    taken = [xp.take_along_axis(value, index) for value in (x, xp.exp(x), y * y)]
    return *taken, y * taken[0]


def rowwise(seed: int) -> Any:
    """Random operations on rows, a number for each row and one for each column."""

    def read(xp: Any, x: Any, row: Any, column: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = [x, row, column, x * xp.number(0.1)]

        def pick() -> Any:
            return values[rng.integers(len(values))]

        def positive() -> Any:
            return xp.square(pick()) + xp.number(0.5)

        operations = [
            lambda: pick() + pick(),
            lambda: pick() - pick() * xp.number(1e-5),
            lambda: pick() / positive(),
            lambda: xp.function(FUNCTIONS[rng.integers(len(FUNCTIONS))], xp.log(positive()) + 1),
            lambda: xp.exp(-xp.square(pick())),
            lambda: pick() - xp.mean(x * pick()),
            lambda: x * xp.sum(x + pick()),
            lambda: xp.max(x - pick()) - pick(),
            lambda: softmax(xp, x * pick()),
            lambda: xp.clip(pick(), -1, 2),
            lambda: xp.where(pick() < pick(), pick(), pick()),
            lambda: xp.power(pick(), 3),
        ]
        for _ in range(8):
            values.append(operations[rng.integers(len(operations))]())
        return x + values[-1], xp.sum(x * values[-2]), x * values[-3]

    return read


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    return rng_of(sum(shape)).normal(0, 2, shape).astype(dtype)


def numpys(formula: Any, *arrays: Any) -> Any:
    return [(y.mid, y.radius) for y in outputs_of(formula(B, *arguments(B, arrays)))]


def assert_agrees(formula: Any, *arrays: Any, precision: int = 300, known: float = 1.0) -> int:
    """Both hold Arb's value; what the kernel knows has NumPy's mid, and about its radius. How many
    those are: at least so many of NumPy's."""
    count = 0
    balls = generated.of(formula, *arrays).balls()
    with Arb(precision) as arb:
        truths = outputs_of(formula(arb, *arguments(arb, arrays)))
        for (mid, radius), (a, p), truth in zip(
            balls, numpys(formula, *arrays), truths, strict=True
        ):
            assert mid.shape == a.shape == truth.shape
            assert outside(B.value(mid, radius), truth) == []
            assert outside(B.value(a, p), truth) == []
            finite = np.isfinite(radius)
            np.testing.assert_array_equal(mid[finite], a[finite])
            assert np.all(radius[finite] <= p[finite] * (1 + 2.0**-20) + 2.0**-1060)
            assert np.all(p[finite] <= radius[finite] * (1 + 2.0**-20) + 2.0**-1060)
            assert finite.sum() >= known * np.isfinite(p).sum()
            assert not np.any(mid[~finite])
            count += int(finite.sum())
    return count


FORWARD = {
    "several": (several, normal(5, 37)),
    "layer_norm": (layer_norm, normal(2, 3, 7), normal(7), normal(1, 7).astype(np.float32)),
    "cross_entropy": (cross_entropy, normal(4, 9), np.eye(9, dtype=bool)[[2, 0, 8, 2]]),
    "picked": (picked, normal(4, 9), np.array([[2], [0], [-1], [5]])),
    "adamw": (adamw, *normal(3, 11), np.abs(normal(11))),
}
BACKWARD = {
    "softmax": (pulled(softmax), normal(4, 6), normal(4, 6) + 1),
    "rms_norm": (pulled(rms_norm), normal(4, 6), normal(4, 6) + 1),
}


@pytest.mark.parametrize("case", [*FORWARD.values(), *BACKWARD.values()], ids=[*FORWARD, *BACKWARD])
def test_arb_lies_in_generated_and_numpy_balls_of_one_mid(case: Any) -> None:
    formula, *arrays = case
    assert assert_agrees(formula, *arrays)


def test_random_formulas_agree() -> None:
    checked = 0
    for seed in range(1, 1 + HUNT):
        print(f"seed {seed}")
        checked += assert_agrees(
            rowwise(seed), normal(5, 13), normal(5, 1), normal(13), precision=1000, known=0.0
        )
    assert checked > 30 * HUNT


def test_functions_agree_on_numbers_of_every_size() -> None:
    """Subnormals, overflow, exact arguments, integers, infinities and NaN."""
    x = doubles(rng_of(1), 2000 * HUNT)
    x[: x.size // 2] = np.clip(x[: x.size // 2], -800, 800)
    x[:3] = np.inf, -np.inf, np.nan
    balls = generated.of(functions, x).balls()
    checked = 0
    with Arb(1200) as arb:
        near = np.abs(x) < 2000  # beyond, Arb takes its time
        truths = functions(arb, arb.array(np.where(near, x, 1.0)))
        for (mid, radius), (a, _), truth in zip(balls, numpys(functions, x), truths, strict=True):
            assert np.isinf(radius[:3]).all()
            assert not np.any(mid[:3])
            finite = np.isfinite(radius)
            np.testing.assert_array_equal(mid[finite], a[finite])
            ball = B.value(np.where(near, mid, 0.0), np.where(near, radius, np.inf))
            assert outside(ball, truth) == []
            checked += int((finite & near).sum())
    assert checked > 15 * len(x) * 0.5


def test_rows_with_special_values_are_unknown_and_leave_others_alone() -> None:
    x = normal(6, 37, dtype=np.float64)
    x[0, 3], x[1, 5], x[2, 0] = np.inf, -np.inf, np.nan
    x[3] = 2.0**-1060
    x[4, :2], x[4, 2:5] = 1e308, np.finfo(np.float32).min
    for (mid, radius), (a, p) in zip(
        generated.of(several, x).balls(), numpys(several, x), strict=True
    ):
        finite = np.isfinite(radius)
        np.testing.assert_array_equal(finite, np.isfinite(p))
        np.testing.assert_array_equal(mid, a)
        assert finite[5].all()


def undefined(xp: Any, x: Any, zero: Any) -> Any:
    """1 / 0, whose divisor is a ball around 0."""
    inverse = 1 / (x / 3 * 3 - x)
    return zero * inverse, inverse * zero, xp.tanh(inverse), xp.maximum(inverse, zero), zero / x


def test_zero_times_what_is_not_defined_is_not_defined() -> None:
    x = rng_of(5).normal(0, 1, 50)
    *unknown, known = generated.of(undefined, x, np.zeros(50)).balls()
    plain = numpys(undefined, x, np.zeros(50))
    for (_, radius), (_, p) in zip(unknown, plain[:-1], strict=True):
        assert np.isinf(radius).all()
        assert np.isinf(p).all()
    assert not np.any(known[1])


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 5), (3, 1024), (2, 1025), (2, 3000), (9,)])
def test_rows_of_any_length_agree(shape: tuple[int, ...]) -> None:
    x = rng_of(3).normal(0, 2, shape)
    for (mid, radius), (a, p) in zip(
        generated.of(several, x).balls(), numpys(several, x), strict=True
    ):
        np.testing.assert_array_equal(mid, a)
        np.testing.assert_allclose(radius, p, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, ">f4", "float64"])
def test_any_dtype_and_layout_gives_the_same_balls(dtype: Any) -> None:
    wide = np.arange(-30, 30).reshape(4, 15).astype(np.float32)
    strided = np.zeros((30, 4), dtype)[::2].T
    strided[:] = wide.astype(dtype)
    for first, second in zip(
        generated.of(hardswish, wide).balls(), generated.of(hardswish, strided).balls(), strict=True
    ):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("formula", [several, hardswish])
def test_no_bit_depends_on_the_number_of_threads(formula: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(generated, "BLOCK", 100)
    x = normal(50, 37)
    before = numba.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            results.append(generated.of(formula, x).balls())
    finally:
        numba.set_num_threads(before)
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def test_what_a_task_changes_is_in_the_results(monkeypatch: Any) -> None:
    monkeypatch.setattr(generated, "BLOCK", 100)
    reading = generated.of(several, normal(50, 37))
    before = reading.balls()

    def task(first: int, last: int, balls: Any) -> None:
        for _, radius in balls:
            radius += 1.0

    for (mid, radius), (middle, wider) in zip(before, reading.balls(task), strict=True):
        np.testing.assert_array_equal(middle, mid)
        np.testing.assert_array_equal(wider, radius + 1.0)


def test_blocks_reach_a_task_as_the_whole_has_them(monkeypatch: Any) -> None:
    monkeypatch.setattr(generated, "BLOCK", 100)
    reading = generated.of(several, normal(50, 37))
    whole = [(mid.reshape(-1), radius.reshape(-1)) for mid, radius in reading.balls()]
    blocks = []

    def task(first: int, last: int, balls: Any) -> None:
        for pair, part, at in zip(whole, balls, reading.places(first, last), strict=True):
            np.testing.assert_array_equal(part, [side[at] for side in pair])
        blocks.append((first, last))

    reading.balls(task)
    assert sum(last - first for first, last in blocks) == 50
    assert len(blocks) > 5


def test_a_formula_that_is_not_a_graph_over_rows_has_no_kernel() -> None:
    x = normal(4, 4)
    formulas = (
        lambda xp, x: xp.matmul(x, x),
        lambda xp, x: xp.sum(x, 0),
        lambda xp, x: xp.cumsum(x),
        lambda xp, x: xp.transpose(x, (1, 0)),
        lambda xp, x: xp.take(x, np.array([0, 0])),
        pulled(lambda xp, x: xp.max(x)),
    )
    for formula in formulas:
        arrays = (normal(4, 1), x) if formula is formulas[-1] else (x,)
        with pytest.raises(Untraceable):
            generated.of(formula, *arrays)
    with pytest.raises(Untraceable, match=r"\(2, 1, 3\)"):
        generated.of(lambda xp, x, y: (x + y, x + x), normal(2, 1, 3), normal(2, 4, 3))


def test_another_param_compiles_nothing() -> None:
    arrays = FORWARD["adamw"][1:]
    first, later = (generated.of(adamw, *arrays, step=step) for step in (3, 900))
    assert first.kernel is later.kernel
    assert np.any(first.balls()[0][0] != later.balls()[0][0])


def twice(xp: Any, x: Any) -> Any:
    return x + x


def test_a_kept_kernel_is_loaded_by_another_process() -> None:
    generated.of(twice, np.ones(3)).balls()
    script = (
        "import numpy as np\nfrom refkernels.arithmetic.waiting import watch\n"
        "from refkernels.contexts import generated\n"
        "def twice(xp, x): return x + x\n"
        "print(generated.of(twice, np.ones(3)).balls()[0][0], watch.compiled)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.split() == ["[2.", "2.", "2.]", "0"], result.stderr


@pytest.mark.parametrize("fault", ["no folder", "full disk"])
def test_without_a_place_to_keep_it_a_kernel_works_in_memory(fault: str, monkeypatch: Any) -> None:
    def refuse(*paths: Any) -> None:
        raise OSError(28, "No space left on device")

    if fault == "no folder":
        monkeypatch.setattr(jit, "cache_folder", lambda module: None)
    else:
        monkeypatch.setattr(Path, "replace", refuse)
    body = f"def kernel(x, y):\n    y[0] = add(x[0], None, {len(fault)}.0, None)[0]\n"
    kernel = loading.kernel.__wrapped__(fault, body)
    y = np.zeros(1)
    kernel(np.ones(1), y)
    assert y[0] == len(fault) + 1.0
    folder = jit.cache_folder(loading.__name__)
    assert folder is None or not list((folder / "sources").glob("*.part"))
