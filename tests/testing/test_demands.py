"""max_ulp, max_over_plain, max_over_baseline, dtype and the warning: each passes and fails."""

import math
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels import layernorm_ref, registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.metrology import error_over_plain
from refkernels.testing import UnusualErrorWarning, assert_kernel, assert_rounding, assert_ulp

EPS = {"eps": 1e-5}
X100 = np.random.default_rng(1).normal(100, 1, (16, 256)).astype(np.float32)
OP = registry.get("layernorm")


def one_pass(x: np.ndarray) -> np.ndarray:
    """y by E[x^2] - E[x]^2 in float32: far from the plain algorithm's, inside any worst case."""
    mean = x.mean(axis=1, keepdims=True)
    variance = (x * x).mean(axis=1, keepdims=True) - mean * mean
    return (x - mean) / np.sqrt(variance + np.float32(1e-5))


def two_pass(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))


def over_plain(y: np.ndarray) -> float:
    plain = OP.plain("forward", {"x": X100}, EPS, formats.BINARY32)["y"]
    exact = layernorm_ref.forward(X100, certify=("rounding", "float32")).y
    ratio = error_over_plain(y, plain, exact, formats.BINARY32, False)
    assert ratio is not None
    return ratio


def gelu_by_erf(x: np.ndarray) -> np.ndarray:
    """torch's and everybody's: 0.5 x (1 + erf(x / sqrt 2)), which cancels for x < 0."""
    scaled = x * np.float32(math.sqrt(0.5))
    erf = np.array([math.erf(v) for v in scaled], np.float32)
    return np.float32(0.5) * x * (1 + erf)


def test_an_unusual_error_warns_where_it_is_and_says_what_to_do() -> None:
    y = one_pass(X100)
    ratio = over_plain(y)
    assert ratio > 10
    with pytest.warns(UnusualErrorWarning) as caught:
        assert_kernel("layernorm", {"x": X100}, y, EPS)
    (warning,) = caught
    message = str(warning.message)
    assert f"layernorm y: the RMS error is {ratio:.3g} times that of the plain" in message
    assert "max_over_plain=4" in message
    assert "y[" in message
    assert warning.filename == __file__


def test_a_usual_error_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_kernel("layernorm", {"x": X100}, two_pass(X100), EPS)
        for stated in ({"max_over_plain": 1e6}, {"max_ulp": 1e9}):  # who accepts is not warned
            assert_kernel("layernorm", {"x": X100}, one_pass(X100), EPS, **stated)


def test_the_warning_begins_where_the_ratio_exceeds_four() -> None:
    """The right answer with noise of a size that is found by bisection, just below and above."""
    exact = np.asarray(layernorm_ref.forward(X100).y)
    noise = np.random.default_rng(2).standard_normal(exact.shape)

    def noisy(size: float) -> np.ndarray:
        return (exact + size * noise).astype(np.float32)

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if over_plain(noisy(middle)) <= 4.0 else (low, middle)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_kernel("layernorm", {"x": X100}, noisy(low), EPS)
    with pytest.warns(UnusualErrorWarning):
        assert_kernel("layernorm", {"x": X100}, noisy(high), EPS)


@pytest.mark.parametrize("y", [one_pass(X100), two_pass(X100)], ids=["one pass", "two passes"])
def test_max_over_plain_is_the_ratio_that_passes(y: np.ndarray) -> None:
    ratio = over_plain(y)
    assert_kernel("layernorm", {"x": X100}, y, EPS, max_over_plain=ratio)
    below = np.nextafter(ratio, 0)
    with pytest.raises(AssertionError, match=r"layernorm y: the RMS error is .* max_over_plain"):
        assert_kernel("layernorm", {"x": X100}, y, EPS, max_over_plain=below)


def test_max_over_plain_does_not_replace_the_bound() -> None:
    y = two_pass(X100)
    y[3, 5] += 1
    with pytest.raises(AssertionError, match="exceeds_bound: 1 of"):
        assert_kernel("layernorm", {"x": X100}, y, EPS, max_over_plain=math.inf)


def test_max_over_baseline_compares_what_both_have() -> None:
    y, baseline = one_pass(X100), two_pass(X100)
    exact = layernorm_ref.forward(X100, certify=("rounding", "float32")).y
    ratio = error_over_plain(y, baseline, exact, formats.BINARY32, False)
    assert ratio is not None
    assert ratio > 10
    stated: dict[str, Any] = {"max_over_plain": math.inf}
    theirs = {"y": baseline, "mean": X100.mean(axis=1)}
    assert_kernel("layernorm", {"x": X100}, y, EPS, max_over_baseline=(theirs, ratio), **stated)
    below = np.nextafter(ratio, 0)
    with pytest.raises(AssertionError, match=r"times that of the baseline, and max_over_baseline"):
        assert_kernel("layernorm", {"x": X100}, y, EPS, max_over_baseline=(theirs, below), **stated)
    # One rounding is no fault, however good the baseline is.
    rounded = exact.round("float32")[0]
    assert_kernel("layernorm", {"x": X100}, rounded, EPS, max_over_baseline=(np.asarray(exact), 1))
    assert_kernel("layernorm", {"x": X100}, y, EPS, max_over_baseline=(y, 1), **stated)


def test_the_published_form_of_gelu_is_inside_its_bound_and_warned_of() -> None:
    x = np.linspace(-5, 5, 1001, dtype=np.float32)
    with pytest.warns(UnusualErrorWarning, match="gelu y"):
        assert_kernel("gelu", {"x": x}, gelu_by_erf(x))
    tanh = (
        np.float32(0.5)
        * x
        * (1 + np.tanh(np.sqrt(np.float32(2 / np.pi)) * x * (1 + np.float32(0.044715) * x * x)))
    )
    with pytest.raises(AssertionError, match=r"gelu y: exceeds_bound: .* named forms"):
        assert_kernel("gelu", {"x": x}, tanh)


def test_max_ulp_accepts_what_exceeds_the_library_limit() -> None:
    x = np.linspace(-5, 5, 1001, dtype=np.float32)
    y = np.exp(x) * np.float32(1 + 2.0**-20)
    with pytest.raises(AssertionError, match=r"exp y: exceeds_bound: .*max_ulp states another"):
        assert_kernel("exp", {"x": x}, y)
    assert_kernel("exp", {"x": x}, y, max_ulp=2.0**24)
    # An acceptance so wide can be narrowed by a comparison.
    right = np.asarray(registry.get("exp").evaluate("forward", {"x": x}, {})["y"])
    better = (right * (1 + 2.0**-23)).astype(np.float32)
    assert_kernel("exp", {"x": x}, better, max_ulp=2.0**24, max_over_baseline=(y, 1))
    with pytest.raises(AssertionError, match="max_over_baseline"):
        assert_kernel("exp", {"x": x}, y, max_ulp=2.0**24, max_over_baseline=(better, 2))


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32", "float64"])
def test_max_ulp_passes_at_the_limit_and_fails_above(format: str) -> None:
    target = formats.get(format)
    x = np.linspace(0.6, 1.4, 5).astype(target.storage)
    y = np.zeros(5, target.storage)  # the exact values are elsewhere
    exact = registry.get("sin").evaluate("forward", {"x": x}, {}, ("rounding", target))["y"]
    y = exact.round(target)[0]
    y[2] = (to_float64(y)[2] + 7 * np.spacing(y[2])).astype(target.storage)
    from refkernels.metrology import ulp_error

    error = float(np.max(np.abs(ulp_error(y, exact).value)))
    assert 6 < error < 8
    assert_kernel("sin", {"x": x}, y, max_ulp=error * (1 + 1e-6))
    with pytest.raises(
        AssertionError, match=r"sin y: 1 of 5 elements .* than max_ulp allows, 6"
    ) as e:
        assert_kernel("sin", {"x": x}, y, max_ulp=6)
    assert "error / max_ulp 1." in str(e.value)
    with pytest.raises(AssertionError):
        assert_kernel("sin", {"x": x}, y, max_ulp=error * (1 - 1e-6))


def test_max_ulp_is_a_limit_below_the_bound_too() -> None:
    a = np.array([[1, 1e8, -1e8]], np.float32)
    b = np.array([[0.75], [1], [1]], np.float32)
    lost = np.zeros((1, 1), np.float32)
    assert_kernel("matmul", {"a": a, "b": b}, lost, max_over_plain=math.inf)
    with pytest.raises(AssertionError, match="1 of 1 elements"):
        assert_kernel("matmul", {"a": a, "b": b}, lost, max_ulp=4)


def test_max_ulp_never_accepts_nan_nor_what_mathematics_forbids() -> None:
    x = np.zeros(3, np.float32)
    with pytest.raises(AssertionError, match="special_value_mismatch"):
        assert_kernel("cos", {"x": x}, np.full(3, np.nan, np.float32), max_ulp=math.inf)
    with pytest.raises(AssertionError, match="invariant_violated"):
        assert_kernel("cos", {"x": x}, np.full(3, 1.5, np.float32), max_ulp=math.inf)
    assert_kernel("cos", {"x": x}, np.full(3, 0.25, np.float32), max_ulp=math.inf)


def test_a_power_of_two_has_the_ulp_of_the_exact_value_s_binade() -> None:
    from refkernels.arithmetic.enclosure import Enclosure
    from refkernels.testing.answer import ulp_limit

    exact = Enclosure(np.array([1.0, 1.0, 1.0, -1.0, 0.0, np.inf]), [-1e-20, 0, 1e-20, 1e-20, 0, 0])
    limit = ulp_limit(exact, 2.0, formats.BINARY32)
    expected = [2.0**-23, 2.0**-22, 2.0**-22, 2.0**-23, 2.0**-148]
    np.testing.assert_array_equal(limit[:5], expected)
    assert np.isfinite(limit[5])


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_float32_out_of_16_bits_is_judged_as_float32(narrow: Any) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(narrow) for shape in ((5, 64), (64, 7)))
    c = a.astype(np.float32) @ b.astype(np.float32)
    assert_kernel("matmul", {"a": a, "b": b}, c)
    with pytest.raises(AssertionError, match="named forms in float32"):
        assert_kernel("matmul", {"a": a, "b": b}, c.astype(narrow).astype(np.float32))
    assert_kernel("matmul", {"a": a, "b": b}, c.astype(narrow))


def test_triton_s_tutorial_passes_y_in_16_bits_with_statistics_in_float32() -> None:
    x = np.random.default_rng(6).standard_normal((4, 33)).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float32)
    mean = wide.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(((wide - mean) ** 2).mean(axis=1, keepdims=True) + np.float32(1e-5))
    y = ((wide - mean) * rstd).astype(x.dtype)
    assert mean.shape == rstd.shape == (4, 1)
    for outputs in ((y, mean, rstd), (y, mean[:, 0], rstd[:, 0]), (y, None, rstd), [y, mean]):
        assert_kernel("layernorm", {"x": x}, outputs, EPS)
    stored = rstd.astype(x.dtype).astype(np.float32)
    with pytest.raises(AssertionError, match=r"layernorm rstd: exceeds_bound: .* float32"):
        assert_kernel("layernorm", {"x": x}, (y, mean, stored), EPS)
    assert_kernel("layernorm", {"x": x}, (y, mean, rstd.astype(x.dtype)), EPS)
    with pytest.raises(AssertionError, match=r"mean has shape \(1, 4\), but \(4,\) is right"):
        assert_kernel("layernorm", {"x": x}, (y, mean.T, rstd), EPS)


def test_another_dtype_of_the_first_output_is_reported() -> None:
    x = np.linspace(0, 1, 5, dtype=np.float32)
    y = np.sin(x.astype(np.float64))
    narrow = y.astype(ml_dtypes.bfloat16)
    with pytest.raises(AssertionError, match="y is bfloat16 where the inputs are float32: say dty"):
        assert_kernel("sin", {"x": x}, narrow)
    for dtype in ("bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), "torch.bfloat16"):
        assert_kernel("sin", {"x": x}, narrow, dtype=dtype)
    assert_kernel("sin", {"x": x}, y, dtype=np.float64)
    with pytest.raises(AssertionError, match="library limit of sin, 4 ulp of float64"):
        assert_kernel("sin", {"x": x}, np.sin(x).astype(np.float64), dtype="float64")
    with pytest.raises(AssertionError, match="sin's y is float32: not float64"):
        assert_kernel("sin", {"x": x}, np.sin(x), dtype="float64")
    with pytest.raises(ValueError, match="dtype is 'float8': choose one of float16, bfloat16"):
        assert_kernel("sin", {"x": x}, np.sin(x), dtype="float8")


def test_a_failing_nan_is_described_in_words() -> None:
    x = np.array([0.5, 1.0], np.float32)
    y = np.sin(x)
    y[1] = np.nan
    checked = 0
    for check in (
        lambda: assert_kernel("sin", {"x": x}, y),
        lambda: assert_kernel("sin", {"x": x}, y, max_ulp=9),
        lambda: assert_rounding(y, np.sin(x), 0.1),
        lambda: assert_ulp(y, np.sin(x), 3),
    ):
        with pytest.raises(AssertionError) as caught:
            check()
        message = str(caught.value)
        assert "NaN where the truth is a finite number" in message
        assert "1 NaN or infinite on one side only" in message
        assert "\n    error" not in message
        checked += 1
    assert checked == 4
    with pytest.raises(AssertionError, match="a finite number where the truth is NaN"):
        assert_kernel("sin", {"x": np.array([np.nan], np.float32)}, x[:1])


def test_where_all_is_nan_no_error_is_shown() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(AssertionError) as caught:
        assert_kernel("sin", {"x": x}, np.full(3, np.nan, np.float32))
    assert "3 NaN or infinite on one side only\n  y[0]" in str(caught.value)
    assert "error / bound" not in str(caught.value)
