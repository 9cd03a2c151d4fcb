"""judge(): every planted fault is seen and named, a correct kernel raises no alarm."""

import json
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels import metrology, registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_fractions
from refkernels.metrology.verdict import error_over_plain
from refkernels.metrology.worst import exact_text, relevant_inputs
from refkernels.op import Invariant, Op, Sum

COUNTS = {
    "elements",
    "compared",
    "not_correctly_rounded",
    "faithful",
    "undecided",
    "uncertified",
    "special_value_mismatches",
    "signed_zero_mismatches",
    "nonzero_at_zero",
    "exact_zeros",
    "sign_changes",
    "flushed_subnormals",
    "overflows",
    "expected_specials",
    "beyond_bound",
    "avoidable",
    "range_limited",
    "ill_conditioned",
}


def square(x: Any, certify: Any = "enclosure") -> Enclosure:
    return from_fractions([Fraction(float(v)) ** 2 for v in np.ravel(x)], np.shape(x))


def plain_square_of(x: Any, format: formats.Format) -> Any:
    with np.errstate(over="ignore"):
        return x * x


SQUARE = Op(
    "square", ("x",), ("y",), "dy", ("dx",),
    forward=square,
    backward=square,
    forward_bound=lambda x, format: 4 * np.float64(x) ** 2 * format.u + format.min_subnormal,
    backward_bound=square,
    forward_condition=lambda x: np.full(np.shape(x), 2.0),
    backward_condition=square,
    forward_plain=plain_square_of,
    backward_plain=square,
    cases=list,
    invariants=(
        Invariant("not_negative", "y >= 0", "forward", "y", lambda y, inputs, params: y < 0),
    ),
    elementwise=True,
)  # fmt: skip


def judge(got: Any, x: Any, op: Op = SQUARE, **changes: Any) -> dict[str, Any]:
    inputs = {"x": x}
    format = formats.of(got)
    settings = {
        "bound": op.bound("forward", inputs, {}, format)["y"],
        "condition": op.condition("forward", inputs, {})["y"],
        "plain": op.plain("forward", inputs, {}, format)["y"],
    } | changes
    reference = settings.pop("reference", None) or square(x)
    record = metrology.judge(
        op, "forward", "y", got, reference, inputs=inputs, params={}, **settings
    )
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert set(record["counts"]) == COUNTS
    assert set(record) == {
        "counts", "ulp", "error", "bound", "plain", "condition", "worst", "invariants_violated",
        "verdict", "flags", "digest",
    }  # fmt: skip
    assert record["counts"]["elements"] == got.size
    return record


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((7, 3)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_correct_kernel_raises_no_alarm(dtype: Any) -> None:
    x = np.random.default_rng(3).standard_normal((7, 3)).astype(dtype)
    record = judge(square(x).round(formats.of(x))[0], x)
    assert record["verdict"] == "correctly_rounded"
    assert record["flags"] == []
    assert record["counts"]["not_correctly_rounded"] == 0
    assert record["counts"]["faithful"] == record["counts"]["compared"] == x.size
    assert record["ulp"]["max"] <= 0.5
    assert record["ulp"]["max_distance"] == 0
    assert record["plain"]["ratio"] <= 1.0
    assert record["bound"]["max_ratio"] <= 1.0


def test_one_ulp_off_is_rounding_and_its_place_is_reported(x: np.ndarray) -> None:
    got = x * x
    got[4, 1] = np.nextafter(got[4, 1], np.float32(np.inf))
    record = judge(got, x)
    assert record["verdict"] == "rounding"
    assert record["counts"]["not_correctly_rounded"] == 1
    assert record["ulp"]["max_distance"] == 1
    worst = record["worst"]
    assert worst["index"] == [4, 1]
    assert float.fromhex(worst["got"]["hex"]) == got[4, 1]
    assert float.fromhex(worst["inputs"]["x"]["hex"]) == x[4, 1]
    assert float(worst["exact"]["decimal"]) == float(x[4, 1]) ** 2
    assert worst["ulp_error"] == pytest.approx(record["ulp"]["max"])
    assert worst["condition"] == record["condition"]["at_worst"] == 2.0


def test_three_ulp_off_exceeds_the_bound(x: np.ndarray) -> None:
    got = x * x
    got[2, 2] += 5 * np.spacing(got[2, 2])
    record = judge(got, x)
    assert record["verdict"] == "exceeds_bound"
    assert record["counts"]["beyond_bound"] == 1
    assert record["bound"]["max_ratio"] > 1
    assert record["worst"]["error_over_bound"] == record["bound"]["max_ratio"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_stray_special_is_never_a_number(x: np.ndarray, bad: float) -> None:
    got = x * x
    got[0, 1] = bad
    record = judge(got, x)
    if np.isnan(bad):
        assert record["verdict"] == "special_value_mismatch"
        assert record["counts"]["compared"] == x.size - 1
        assert record["worst"]["index"] == [0, 1]
        assert record["worst"]["got"]["decimal"] == "nan"
    else:
        assert record["verdict"] == ("exceeds_bound" if bad > 0 else "invariant_violated")
        assert record["counts"]["overflows"] == 1
        assert record["ulp"]["max"] > 1e30
        assert "overflows" in record["flags"]


def test_an_overflow_that_the_bound_allows_is_counted_only(x: np.ndarray) -> None:
    got = x * x
    got[0, :2] = np.nan, -np.inf
    bound = np.full(x.shape, 1e-6)
    bound[0, :2] = np.inf
    record = judge(got, x, op=plain_square(), bound=bound)
    assert record["verdict"] == "rounding"
    assert record["counts"]["overflows"] == 2
    assert record["counts"]["special_value_mismatches"] == 0
    assert record["counts"]["compared"] == x.size - 2
    assert record["ulp"]["max"] <= 0.5


def plain_square() -> Op:
    return Op(**{**SQUARE.__dict__, "invariants": ()})


def test_expected_specials_are_met_as_they_are() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, 1.0], np.float32)
    truth = Enclosure(np.array([np.nan, np.inf, np.inf, 1e60, 1.0]))
    right = np.array([-np.nan, np.inf, np.inf, np.inf, 1.0], np.float32)
    record = judge(right, x, reference=truth, bound=np.full(5, 1e-3))
    assert record["verdict"] == "correctly_rounded"
    assert record["counts"]["expected_specials"] == 4
    assert record["counts"]["compared"] == 1
    for place, bad in ((0, 1.0), (0, np.inf), (1, -np.inf), (1, 3e38), (2, np.nan), (3, np.nan)):
        got = right.copy()
        got[place] = bad
        record = judge(got, x, reference=truth, bound=np.full(5, 1e-3), op=plain_square())
        assert record["verdict"] == "special_value_mismatch", (place, bad)
        assert record["counts"]["special_value_mismatches"] == 1


def test_a_finite_answer_where_infinity_is_right_is_a_number() -> None:
    x = np.array([2e19], np.float32)
    got = np.array([np.finfo(np.float32).max])
    record = judge(got, x, bound=np.array([1e36]))
    assert record["verdict"] == "exceeds_bound"
    assert record["counts"]["not_correctly_rounded"] == record["counts"]["compared"] == 1


def test_a_flushed_subnormal_is_flagged() -> None:
    x = np.array([2.0**-70, 2.0**-64, 2.0**-80], np.float32)
    got = np.zeros(3, np.float32)
    record = judge(got, x, bound=np.full(3, 2.0**-120))
    assert record["counts"]["flushed_subnormals"] == 2
    assert "flushed_subnormals" in record["flags"]
    assert record["counts"]["not_correctly_rounded"] == 2
    assert record["verdict"] == "rounding"


def test_a_sign_change_is_flagged(x: np.ndarray) -> None:
    got = x * x
    got[1, 1] = -got[1, 1]
    record = judge(got, x)
    assert record["counts"]["sign_changes"] == 1
    assert record["invariants_violated"] == ["not_negative"]
    assert record["verdict"] == "invariant_violated"
    assert judge(got, x, op=plain_square())["verdict"] == "exceeds_bound"


def test_nonzero_at_an_exact_zero_is_left_out_of_the_ulp_figures(x: np.ndarray) -> None:
    x[3] = 0.0
    got = x * x
    got[3, 0] = 1e-3
    record = judge(got, x, bound=np.full(x.shape, 1e-2))
    assert record["verdict"] == "rounding"
    assert record["counts"]["nonzero_at_zero"] == 1
    assert record["counts"]["exact_zeros"] == 3
    assert record["counts"]["compared"] == x.size - 1
    assert record["error"]["max_abs_at_zero"] == float(np.float32(1e-3))
    assert record["ulp"]["max"] <= 0.5
    assert "nonzero_at_zero" in record["flags"]
    assert judge(got, x)["verdict"] == "exceeds_bound"


def test_the_sign_of_a_zero_is_counted_apart(x: np.ndarray) -> None:
    x[0, 0] = 0.0
    got = x * x
    got[0, 0] = -0.0
    record = judge(got, x)
    assert record["counts"]["signed_zero_mismatches"] == 1
    assert record["counts"]["not_correctly_rounded"] == 0
    assert record["verdict"] == "rounding"
    assert record["flags"] == ["signed_zero_mismatches"]


def test_only_a_certain_excess_exceeds_the_bound() -> None:
    got = np.array([1.5], np.float32)
    truth = Enclosure(np.array([1.0]), 0.0, np.array([0.3]))
    x = np.ones(1, np.float32)
    assert judge(got, x, reference=truth, bound=np.array([0.21]))["verdict"] == "rounding"
    assert judge(got, x, reference=truth, bound=np.array([0.19]))["verdict"] == "exceeds_bound"


def test_what_an_enclosure_cannot_decide_is_undecided() -> None:
    truth = Enclosure(np.array([1.0 + 2.0**-24]), 0.0, np.array([2.0**-60]))
    x = np.ones(1, np.float32)
    low, high = np.ones(1, np.float32), np.array([1 + 2.0**-23], np.float32)
    beyond = np.array([1 + 2.0**-22], np.float32)
    for got, undecided in ((low, 1), (high, 1), (beyond, 0)):
        record = judge(got, x, reference=truth)
        assert record["counts"]["undecided"] == undecided
        assert record["counts"]["not_correctly_rounded"] == 1 - undecided
        assert record["verdict"] == "rounding"


def test_half_an_ulp_does_not_mean_correctly_rounded() -> None:
    """1 - 2^-24 scores exactly 0.5 ulp at z = 1, and so does the wrong side of a tie."""
    x = np.ones(2, np.float32)
    truth = Enclosure(np.array([1.0, 1.0 + 2.0**-24]))
    got = np.array([1 - 2.0**-24, 1 + 2.0**-23], np.float32)
    record = judge(got, x, reference=truth)
    assert record["ulp"]["max"] == 0.5
    assert record["counts"]["not_correctly_rounded"] == 2


@pytest.mark.parametrize("format", [formats.BINARY16, formats.BFLOAT16], ids=str)
def test_faithful_means_one_of_the_two_floats_around_the_truth(format: formats.Format) -> None:
    floats = np.arange(1 << 16, dtype=np.uint16).view(format.dtype)
    with np.errstate(invalid="ignore"):
        floats = np.sort(floats[np.isfinite(floats)].astype(np.float64))
    low, high = floats[:-1], floats[1:]
    low, high = low[low < high], high[low < high]
    middle = Enclosure(low, (high - low) / 4)  # strictly between two neighbours
    middle = Enclosure(low + (high - low) / 4)
    outside = high + (high - low)
    keep = np.isin(outside, floats)
    for got, count in ((low, low.size), (high, low.size), (outside, 0)):
        chosen = keep if got is outside else np.ones(low.size, bool)
        summary = metrology.summarise(got[chosen].astype(format.dtype), middle[chosen])
        assert summary.counts["faithful"] == count
        assert summary.counts["elements"] > 25_000


def test_percentiles_and_histogram_are_exact() -> None:
    rng = np.random.default_rng(5)
    truth = rng.standard_normal(40_001) * 10.0 ** rng.integers(-20, 20, 40_001)
    got = (truth * (1 + rng.standard_cauchy(40_001) * 1e-7)).astype(np.float32)
    size = np.abs(metrology.ulp_error(got, truth).value)
    summary = metrology.summarise(got, Enclosure(truth))
    for name, q in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        assert summary.percentiles[name] == np.quantile(size, q, method="inverted_cdf")
    assert summary.max == size.max()
    assert summary.worst_error == size.argmax()
    assert summary.mean == pytest.approx(size.mean(), rel=1e-12)
    for edge, count in summary.histogram:
        upper = 2.0**-6 if edge == 0 else 2 * edge
        assert count == np.sum((size >= edge) & (size < upper))
    assert sum(count for _, count in summary.histogram) == size.size
    assert summary.max_distance == metrology.ulp_distance(got, Enclosure(truth)).max()


@pytest.mark.parametrize("exponent", [50, 57, 300, 900])
def test_huge_errors_have_a_place_in_the_histogram(exponent: int) -> None:
    truth = Enclosure(np.array([1.0, 2.0**-exponent]))
    summary = metrology.summarise(np.array([1.0, 1.5]), truth)
    assert summary.histogram == [(0.0, 1), (2.0 ** (exponent + 52), 1)]
    assert summary.percentiles["p99"] == summary.max


def test_empty_and_scalar_outputs_are_judged() -> None:
    empty = np.empty((0, 3), np.float32)
    record = judge(empty, empty)
    assert record["ulp"] is None
    assert record["worst"] is None
    assert record["verdict"] == "correctly_rounded"
    scalar = np.array(3.0, np.float32)
    assert judge(scalar * scalar + 1, scalar)["worst"]["index"] == []


def test_error_over_plain_is_finite_and_fair() -> None:
    truth = Enclosure(np.array([1.0, 2.0, 4.0]))
    exact = np.array([1, 2, 4], np.float32)
    ratio = lambda got, plain: error_over_plain(  # noqa: E731
        got, plain, truth, formats.BINARY32, False
    )
    assert ratio(exact, exact) == 0.0
    one_off = np.nextafter(exact, np.float32(9))
    assert ratio(one_off, exact) == pytest.approx(12.0**0.5)  # in units of a rounding's RMS error
    assert ratio(exact + np.float32(0.5), exact) > 1e5
    assert ratio(one_off, one_off) == 1.0
    assert ratio(np.full(3, np.nan, np.float32), exact) is None


def test_unusual_is_a_flag_and_not_a_verdict(x: np.ndarray) -> None:
    got = (x * x) * np.float32(1 + 3e-6)
    record = judge(got, x, bound=np.full(x.shape, 1.0))
    assert record["verdict"] == "rounding"
    assert record["flags"] == ["unusual"]
    assert record["plain"]["ratio"] > 4


def test_an_invalid_bound_is_refused(x: np.ndarray) -> None:
    with pytest.raises(ValueError, match="bound of square's y is NaN or negative"):
        judge(x * x, x, bound=np.full(x.shape, np.nan))
    with pytest.raises(ValueError, match="shape"):
        metrology.judge(
            SQUARE, "forward", "y", x[0], square(x), bound=np.ones(3), inputs={"x": x}, params={}
        )


def test_a_scaled_truth_is_measured_beyond_float64() -> None:
    truth = from_fractions([Fraction(2) ** 1030, Fraction(3, 2) * Fraction(2) ** -1080], (2,))
    got = np.array([np.inf, 5e-324])
    summary = metrology.summarise(got, truth)
    assert summary.counts["expected_specials"] == 1
    assert summary.counts["not_correctly_rounded"] == 1
    assert summary.max == pytest.approx(1 - 1.5 * 2.0**-6)


def test_digest_is_of_dtype_shape_and_bits_with_nans_as_one() -> None:
    a = np.array([1.0, np.nan, -0.0], np.float32)
    b = a.copy()
    b.view(np.uint32)[1] ^= 0x80000001
    assert metrology.digest(a) == metrology.digest(b) == metrology.digest(a[::-1][::-1])
    different = [a.reshape(3, 1), a.astype(np.float64), np.abs(a), a[:2]]
    assert len({metrology.digest(array) for array in (a, *different)}) == 5


def test_agreement_counts_bits_and_ignores_nan_payloads() -> None:
    a = np.array([1.0, np.nan, -0.0, 5.0, np.inf, np.nan], np.float32)
    b = np.array([1.0, np.nan, 0.0, 5.0000005, np.inf, 1.0], np.float32)
    agreement = metrology.agreement(a, b)
    assert agreement["elements"] == 6
    assert agreement["equal_bits"] == 3
    assert agreement["max_ulp_distance"] == 1
    assert agreement["max_abs_difference"] == float(b[3]) - 5.0
    assert metrology.agreement(a[1:2], b[5:])["max_abs_difference"] is None
    assert json.dumps(metrology.agreement(a[4:5], -a[4:5]), allow_nan=False)
    strided = np.arange(12, dtype=np.float16).reshape(3, 4).T
    assert metrology.agreement(strided, strided.copy())["equal_bits"] == 12


def product(op: str, output: str) -> Sum | None:
    return registry.get(op).sums.get(output)


def test_the_row_and_the_column_of_a_product_are_shown() -> None:
    inputs = {"a": np.arange(30.0).reshape(2, 3, 5), "b": np.arange(35.0).reshape(5, 7)}
    shown = relevant_inputs(product("matmul", "c"), (1, 2, 6), (2, 3, 7), inputs)
    assert shown["a"]["index"] == [1, 2, ":"]
    assert shown["a"]["decimal"] == "25.0, 26.0, 27.0, 28.0, ..."
    assert shown["a"]["note"] == "first 4 of 5 elements"
    assert shown["b"]["index"] == [":", 6]
    assert shown["b"]["decimal"].startswith("6.0, 13.0")
    linear = {"dy": np.ones((2, 3, 4)), "x": np.ones((2, 3, 5)), "weight": np.ones((4, 5))}
    shown = relevant_inputs(product("linear", "dweight"), (3, 1), (4, 5), linear)
    assert shown["dy"]["index"] == [":", ":", 3]
    assert shown["x"]["index"] == [":", ":", 1]
    assert set(shown) == {"dy", "x"}
    rows = {"x": np.ones((4, 5)), "weight": np.ones(5)}
    shown = relevant_inputs(product("layernorm", "y"), (2, 3), (4, 5), rows)
    assert shown["x"]["index"] == [2, 3]
    assert shown["weight"]["index"] == [3]
    assert relevant_inputs(product("layernorm", "rstd"), (2,), (4,), rows)["x"]["index"] == [2, ":"]


def test_a_nan_for_an_infinity_is_allowed_only_where_the_bound_is_infinite() -> None:
    truth = Enclosure(np.array([np.inf, 4.0]))
    inputs = {"x": np.array([np.inf, 2.0], np.float32)}
    got = np.array([np.nan, 4.0], np.float32)
    for bound, expected in ((1.0, "special_value_mismatch"), (np.inf, "rounding")):
        record = metrology.judge(
            SQUARE,
            "forward",
            "y",
            got,
            truth,
            bound=np.array([bound, 1.0]),
            inputs=inputs,
            params={},
        )
        assert record["verdict"] == expected
        assert record["counts"]["overflows"] == (bound == np.inf)


def test_a_value_far_beyond_decimal_s_usual_range_is_written_out() -> None:
    text = exact_text(Enclosure(np.array([1.5, 1.5]), 0.0, 0.0, np.array([2**29, -(2**29)])), (0,))
    assert text["decimal"].endswith("e+161614248")
    text = exact_text(Enclosure(np.array([1.5, 1.5]), 0.0, 0.0, np.array([2**29, -(2**29)])), (1,))
    assert text["decimal"].endswith("e-161614249")


def test_the_record_names_the_sharpest_form_that_permits_the_error(x: np.ndarray) -> None:
    right = square(x)
    got = right.round("float32")[0]
    off = np.abs(got - np.asarray(right))
    wide, narrow = np.full(x.shape, off.max() * 2), np.full(x.shape, off.max() / 2)
    for forms, name in (
        ({"narrow": narrow, "wide": wide}, "wide"),
        ({"first": wide, "wide": wide * 2}, "first"),
        ({"narrow": narrow, "wide": narrow}, None),
    ):
        record = judge(got, x, bound=np.maximum.reduce(list(forms.values())), forms=forms)
        assert record["bound"].get("form") == name
        assert (record["verdict"] == "exceeds_bound") == (name is None)


def test_a_limit_is_reported_with_its_source_forward_only() -> None:
    op = registry.get("sqrt")
    x = np.float32([2.0, 3.0])
    for direction, output in (("forward", "y"), ("backward", "dx")):
        inputs = {"x": x, "dy": x}
        inputs = {name: inputs[name] for name in op.takes(direction)}
        exact = op.evaluate(direction, inputs, {})[output]
        bound = op.bound(direction, inputs, {}, formats.BINARY32)[output]
        got = exact.round("float32")[0]
        judged = metrology.judge(
            op, direction, output, got, exact, bound=bound, inputs=inputs, params={}
        )["bound"]
        assert ("limit" in judged) == (direction == "forward")
    assert op.limit == 0.5
    assert "IEEE 754" in op.limit_source


def test_a_number_beside_almost_nothing_is_off_by_itself() -> None:
    """So many ulp that float64 does not hold them; the absolute error is the number."""
    tiny = Enclosure(np.array([0.75]), radius=np.array([2.0**-60]), scale=np.array([-14000]))
    for n in (1, 3000):  # an array's kernel, and its fallback
        whole = Enclosure(
            *(np.repeat(getattr(tiny, part), n) for part in ("hi", "lo", "radius", "scale"))
        )
        summary = metrology.summarise(np.full(n, 5e-15), whole, np.full(n, 7e-8), formats.BINARY64)
        assert summary.counts["beyond_bound"] == 0
        summary = metrology.summarise(np.full(n, 5e-15), whole, np.full(n, 4e-15), formats.BINARY64)
        assert summary.counts["beyond_bound"] == n
