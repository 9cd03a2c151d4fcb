"""The Op record, the algorithms, NIST's data, arguments and their error messages."""

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from refkernels import layernorm_ref

NIST = Path(__file__).parent.parent / "data" / "nist-strd"
(OP,) = layernorm_ref.OPS
SEED_ROW = np.array([[-1.83965693, -1.82964566]], np.float32)


def nist_statistics(rounding):
    lines = (NIST / "exact_statistics.csv").read_text().splitlines()[1:]
    rows = [row for row in csv.DictReader(lines) if row["data_rounding"] == rounding]
    return {row["dataset"]: (int(row["n"]), row["mean"], row["var_biased"]) for row in rows}


def nist_data(name):
    """The numbers after the ruler below "Data: Y": the header's length differs between files."""
    lines = (NIST / f"{name}.dat").read_text().splitlines()
    start = max(i for i, line in enumerate(lines) if line.strip().startswith("-----")) + 1
    return np.array([float(line) for line in lines[start:] if line.strip()])


@pytest.mark.parametrize("dtype", ["binary32", "binary64"])
def test_nist_statistics_are_enclosed(dtype):
    targets = nist_statistics(dtype)
    assert len(targets) == 8
    for name, (size, mean, variance) in targets.items():
        x = nist_data(name).astype({"binary32": np.float32, "binary64": np.float64}[dtype])
        got = layernorm_ref.forward(x, eps=0.0)
        assert x.size == size
        exact = Fraction(mean)
        printed = abs(exact) * Fraction(1, 10**28)  # the file holds 30 digits
        lower, upper = got.mean.lower_upper(())
        assert lower - printed <= exact <= upper + printed, name
        if Fraction(variance) == 0:
            assert np.isposinf(got.rstd.hi)
            continue
        low, high = (end**2 for end in got.rstd.lower_upper(()))
        assert low * Fraction(variance) <= 1 + Fraction(1, 10**27), name
        assert high * Fraction(variance) >= 1 - Fraction(1, 10**27), name


def test_unclamped_one_pass_variance_violates_an_invariant():
    rng = np.random.default_rng(3)
    x = (1000.0 + 0.001 * rng.standard_normal((64, 8))).astype(np.float32)
    rstd = layernorm_ref.layernorm(x, algorithm="naive").rstd
    broken = [inv.violated(rstd, {"x": x}, {"eps": 1e-5}) for inv in OP.invariants]
    assert np.any(broken) or np.isnan(rstd).any()
    high = np.full(64, 320.0, np.float32)
    limited = next(inv for inv in OP.invariants if inv.name == "rstd_limited")
    assert limited.violated(high, {"x": x}, {"eps": 1e-5}).all()


def test_one_pass_float32_gives_the_bits_of_torch_1_9_on_the_seed_row():
    old = layernorm_ref.layernorm(SEED_ROW, algorithm="naive_clamped", form="folded")
    np.testing.assert_array_equal(np.round(old.y, 4), np.float32([[-0.8428, 0.8428]]))


def test_two_pass_float32_gives_paddles_gradient_on_the_seed_row():
    got = layernorm_ref.layernorm_backward(np.ones_like(SEED_ROW), SEED_ROW)
    np.testing.assert_array_equal(np.round(got.dx, 8), np.float32([[-0.00143835, 0.00143831]]))


def test_infinite_weight_gradient_and_bias_keep_their_signs():
    x = np.array([[1.0, 2.0, 4.0, 5.0, 3.0]])
    weight = np.array([np.inf, np.inf, -np.inf, 1.0, np.inf])
    bias = np.array([0.0, 0.0, 0.0, -np.inf, 0.0])
    y = layernorm_ref.forward(x, weight, bias).y
    np.testing.assert_array_equal(y.hi, [[-np.inf, -np.inf, -np.inf, -np.inf, np.nan]])
    dy = np.array([[np.inf, 1.0, -np.inf, np.nan, np.inf]])
    back = layernorm_ref.backward(dy, x)
    assert np.isnan(back.dx.hi).all()
    np.testing.assert_array_equal(back.dweight.hi[[0, 2, 3, 4]], [-np.inf, -np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(back.dbias.hi, dy[0])


def test_the_forms_and_the_counts_of_the_algorithms_are_checked():
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"no form 'folde'.*centred"):
        layernorm_ref.layernorm(x, form="folde")
    with pytest.raises(ValueError, match=r"no algorithm 'kahan'.*welford"):
        layernorm_ref.moments(x, "kahan")
    with pytest.raises(TypeError, match=r"lanes is 1\.5"):
        layernorm_ref.chunked_welford(x, lanes=1.5)


def test_condition_of_rstd_is_the_variances_where_eps_is_zero():
    x = np.array([[99.0, 101.0, 99.0, 101.0]])
    got = layernorm_ref.forward_condition(x, eps=0.0)
    np.testing.assert_allclose(got.rstd, np.sqrt(1.0 + 1e4), rtol=1e-14)
    assert layernorm_ref.forward_condition(np.ones((1, 3))).rstd[0] == 0.0
