"""The assertions for kernel authors: failures, passes, messages, and misuse named in a sentence."""

import math
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from plugin_runs import run_pytest

from refkernels import registry
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.testing import assert_kernel, assert_rounding, assert_ulp
from refkernels.testing import assert_kernel as check

ONES = np.ones(3, np.float32)
ABOVE = np.nextafter(ONES, np.float32(2))


def test_assert_ulp_counts_from_the_exact_value() -> None:
    truth = Enclosure(np.full(3, 1.0), np.full(3, 1e-20))
    assert_ulp(ONES, truth, 0.5)
    assert_ulp(ABOVE, truth, 1)
    with pytest.raises(AssertionError, match=r"3 of 3 elements are more than 0\.9 ulp"):
        assert_ulp(ABOVE, truth, 0.9)


def test_assert_ulp_fails_only_for_certain() -> None:
    wide = Enclosure(np.full(3, 1.5), 0.0, np.full(3, 2.0**-23))
    got = np.full(3, 1.5 + 2.0**-22, np.float32)
    assert_ulp(got, wide, 1)
    with pytest.raises(AssertionError):
        assert_ulp(got, wide, 0.99)


def test_assert_ulp_at_zero_counts_the_smallest_subnormals() -> None:
    zeros = np.zeros(2)
    assert_ulp(np.array([0.0, 1e-45], np.float32), zeros, 1)
    with pytest.raises(AssertionError, match="1 of 2"):
        assert_ulp(np.array([0.0, 3e-45], np.float32), zeros, 1)
    assert_ulp(np.array([-0.0, 0.0], np.float32), zeros, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_special_on_one_side_fails(bad: float) -> None:
    got = np.array([1, bad, 1], np.float32)
    with pytest.raises(AssertionError, match=r"got\[1\] = -?(nan|inf)"):
        assert_ulp(got, ONES, 1000)
    with pytest.raises(AssertionError, match="got"):
        assert_rounding(got, ONES, 1e3)
    with pytest.raises(AssertionError):
        assert_ulp(ONES, got, 1000)
    assert_ulp(got, got, 0)
    assert_rounding(got, got, 0.0)


def test_assert_rounding_allows_what_the_bound_allows() -> None:
    assert_rounding(ABOVE, ONES, 2.0**-23)
    assert_rounding(np.array([np.nan, 1, 1], np.float32), ONES, np.array([np.inf, 0, 0]))
    with pytest.raises(AssertionError, match="3 of 3 elements are further from the truth"):
        assert_rounding(ABOVE, ONES, 2.0**-24)


def test_the_message_shows_the_worst_elements_in_decimal_and_hex() -> None:
    got = np.array([1.0, 1.25, 1.5], np.float32)
    with pytest.raises(AssertionError) as caught:
        assert_rounding(got, np.array([1.0, 1.125, 1.0]), 0.1)
    message = str(caught.value)
    assert message.index("got[2]") < message.index("got[1]")
    assert "got[0]" not in message
    assert "1.5 (0x1.8000000000000p+0)" in message
    assert "(0x1.2000000000000p+0)" in message
    assert "error / bound 5" in message
    assert "Next step:" in message


def test_a_wrong_shape_fails_and_nothing_is_broadcast() -> None:
    for call in (lambda: assert_ulp(ONES, np.ones((3, 1)), 1),
                 lambda: assert_rounding(ONES[:1], np.ones(3), 1.0)):  # fmt: skip
        with pytest.raises(AssertionError, match=r"shape \(.*but \(.*is right"):
            call()


def test_misuse_is_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match="max_ulp"):
        assert_ulp(ONES, ONES, -1)
    with pytest.raises(ValueError, match="max_ulp"):
        assert_ulp(ONES, ONES, float("nan"))
    with pytest.raises(ValueError, match="too wide"):
        assert_ulp(ONES, Enclosure(np.ones(3), 0.0, np.full(3, 2.0)), 1)
    with pytest.raises(ValueError, match="broadcast"):
        assert_rounding(ONES, ONES, np.ones(2))
    with pytest.raises(ValueError, match="NaN or negative"):
        assert_rounding(ONES, ONES, np.nan)
    with pytest.raises(TypeError, match="got has dtype int64"):
        assert_ulp(np.arange(3), ONES, 1)


class Foreign:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


def test_foreign_arrays_and_bfloat16_are_taken() -> None:
    assert_ulp(Foreign(ONES), Foreign(ONES), 0)
    assert_ulp(np.array([1.0078125], ml_dtypes.bfloat16), np.array([1.005]), 0.5)
    torch = pytest.importorskip("torch", reason="torch tensors are taken where torch is there")
    assert_ulp(torch.ones(3, dtype=torch.bfloat16), np.ones(3), 0)
    x = torch.linspace(-2, 2, 12, dtype=torch.bfloat16).reshape(3, 4)
    answer = torch.native_layer_norm(x, (4,), None, None, 1e-5)
    check("layernorm", {"x": x}, answer, {"eps": 1e-5})
    check("sin", {"x": x}, torch.sin(x.float()), dtype=torch.float32)


def case(name: str, dtype: Any = np.float32) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Small inputs, params and the plain algorithm's outputs of an op."""
    op = registry.get(name)
    rng = np.random.default_rng(7)
    shapes = {
        "matmul": {"a": (3, 5), "b": (5, 2)},
        "linear": {"x": (3, 5), "weight": (2, 5), "bias": (2,)},
        "layernorm": {"x": (3, 17), "weight": (17,), "bias": (17,)},
    }.get(name, {"x": (7,)})
    inputs = {key: rng.standard_normal(shape).astype(dtype) for key, shape in shapes.items()}
    params = {"eps": 1e-5} if name == "layernorm" else {}
    from refkernels.arithmetic import formats

    return inputs, params, op.plain("forward", inputs, params, formats.get(dtype))


OPS = ["matmul", "linear", "layernorm", "sin", "cos", "tan"]


@pytest.mark.parametrize("name", OPS)
def test_a_plain_kernel_passes_assert_kernel(name: str) -> None:
    inputs, params, outputs = case(name)
    check(name, inputs, outputs, params)
    check(name, inputs, next(iter(outputs.values())), params)


@pytest.mark.parametrize("name", OPS)
def test_a_wrong_element_fails_assert_kernel(name: str) -> None:
    inputs, params, outputs = case(name)
    first = registry.get(name).outputs[0]
    wrong = np.array(outputs[first])
    wrong.flat[1] += np.float32(1e-3)
    with pytest.raises(AssertionError) as caught:
        check(name, inputs, {**outputs, first: wrong}, params)
    message = str(caught.value)
    assert f"{name} {first}: exceeds_bound: 1 of {wrong.size} elements" in message
    assert "condition number" in message
    assert float(wrong.flat[1]).hex() in message


def test_backward_is_checked_with_its_cotangent() -> None:
    x = np.array([0.5, -1.25], np.float32)
    dy = np.array([2.0, 3.0], np.float32)
    dx = (dy * np.cos(x.astype(np.float64))).astype(np.float32)
    check("sin", {"dy": dy, "x": x}, {"dx": dx}, direction="backward")
    with pytest.raises(AssertionError, match="sin dx: exceeds_bound"):
        check("sin", {"dy": dy, "x": x}, -dx, direction="backward")
    with pytest.raises(ValueError, match="sin backward needs 'dy'"):
        check("sin", {"x": x}, dx, direction="backward")


def test_correct_rounding_can_be_asked_for() -> None:
    x = np.linspace(-3, 3, 101, dtype=np.float32)
    right = np.sin(x.astype(np.float64)).astype(np.float32)
    check("sin", {"x": x}, right, verdict="correctly_rounded")
    right[7] = np.nextafter(right[7], np.float32(2))
    check("sin", {"x": x}, right)
    with pytest.raises(AssertionError, match="1 of 101 elements are not correctly rounded"):
        check("sin", {"x": x}, right, verdict="correctly_rounded")


def test_an_invariant_is_named() -> None:
    x = np.zeros(3, np.float32)
    with pytest.raises(AssertionError, match="cos y: invariant_violated: 3 of 3 elements are what"):
        check("cos", {"x": x}, ABOVE)


PLUGIN_TEST = """
import numpy as np
def test_one(assert_kernel):
    assert_kernel("sin", {"x": np.zeros(2, np.float32)}, np.zeros(2, np.float32))
"""


def test_the_plugin_offers_the_fixture_and_sums_up_what_several_processes_did(
    tmp_path: Path,
) -> None:
    pytest.importorskip("xdist")
    text = run_pytest(tmp_path, PLUGIN_TEST + PLUGIN_TEST.replace("test_one", "test_two"), "-n2")
    assert "2 passed" in text, text
    assert re.search(r"oracle assertions: 2; largest error / bound 0", text), text


REWRITTEN_TEST = """
import sys, refkernels.op, refkernels.testing.assertions
def test_it():
    names = ("refkernels.op", "refkernels.testing.assertions")
    loaders = [type(sys.modules[name].__loader__).__name__ for name in names]
    assert [name == "AssertionRewritingHook" for name in loaders] == [False, True]
"""


def test_pytest_rewrites_the_assertions_and_not_the_whole_package(tmp_path: Path) -> None:
    text = run_pytest(tmp_path, REWRITTEN_TEST)
    assert "1 passed" in text, text


UNUSUAL_TEST = """
import numpy as np
from refkernels import layernorm_ref
X = np.random.default_rng(0).normal(0, 1, (4, 256)).astype(np.float32)
Y = (np.asarray(layernorm_ref.forward(X).y) * (1 + 2.0**-19)).astype(np.float32)
def test_one(assert_kernel):
    assert_kernel("layernorm", {"x": X}, Y)
"""


def test_the_plugin_counts_unusual_errors_which_can_be_made_failures(tmp_path: Path) -> None:
    text = run_pytest(tmp_path, UNUSUAL_TEST)
    assert "1 passed, 1 warning" in text, text
    assert "UnusualErrorWarning: layernorm y: the RMS error is" in text, text
    assert "test_it.py:7" in text, text
    assert re.search(r"oracle assertions: 1; .*; unusual errors: 1\n", text), text
    text = run_pytest(tmp_path, UNUSUAL_TEST, "-W", "error::refkernels.testing.UnusualErrorWarning")
    assert "1 failed" in text, text


def test_the_plugin_is_silent_and_light_where_it_is_not_used(tmp_path: Path) -> None:
    source = "import sys\ndef test_it(): assert 'numba' not in sys.modules\n"
    text = run_pytest(tmp_path, source)
    assert "1 passed" in text, text
    assert "oracle assertions" not in text


X = np.linspace(0.25, 1.75, 6, dtype=np.float32).reshape(2, 3)
Y = np.sin(X)


@pytest.mark.parametrize(
    ("stated", "error", "words"),
    [
        ({"op": None}, TypeError, "Give an op's name, not a NoneType"),
        ({"inputs": None}, ValueError, "sin forward needs 'x' among its inputs"),
        ({"outputs": None}, ValueError, "sin forward gives y, but none of them was given"),
        ({"params": [1]}, TypeError, "params must map names to values, and is of type list"),
        ({"max_ulp": "4"}, TypeError, "max_ulp is of type str: it must be a number >= 0"),
        ({"max_ulp": -1}, ValueError, "max_ulp is -1: it must be a number >= 0"),
        ({"max_over_plain": math.nan}, ValueError, "max_over_plain is nan"),
        ({"max_over_plain": 0.0}, ValueError, "max_over_plain is 0: it must be a number > 0"),
        ({"max_over_baseline": (Y, 0)}, ValueError, "factor is 0: it must be a number > 0"),
        ({"max_over_baseline": Y}, TypeError, r"max_over_baseline is \(outputs, factor\)"),
        ({"max_over_baseline": (Y, True)}, TypeError, "max_over_baseline's factor is of type bool"),
        ({"max_over_baseline": (Y[:1], 2)}, ValueError, r"baseline's y has shape \(1, 3\)"),
        ({"direction": Y}, ValueError, "give 'forward' or 'backward'"),
        ({"verdict": None}, ValueError, "verdict is of type NoneType: ask for 'rounding'"),
        ({"outputs": Y.astype(ml_dtypes.float8_e5m2)}, TypeError, "y has dtype float8_e5m2"),
        ({"outputs": Y.astype(np.int8)}, TypeError, "y has dtype int8"),
        ({"outputs": Y[:1]}, AssertionError, r"\(1, 3\)"),
        ({"outputs": Y.astype(np.float64)}, AssertionError, "float64 where the inputs"),
        ({"inputs": {"x": X.astype(complex)}}, TypeError, "x has dtype complex128"),
    ],
)
def test_what_is_wrong_is_named(stated: dict[str, Any], error: type, words: str) -> None:
    kernel = {"op": "sin", "inputs": {"x": X}, "outputs": Y}
    with pytest.raises(error, match=words):
        assert_kernel(**{**kernel, **stated})
