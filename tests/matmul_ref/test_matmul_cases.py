"""Every case of both ops runs through its Op record, certified, and the plain algorithm passes."""

from fractions import Fraction

import numpy as np
import pytest

from refkernels import matmul_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.matmul_ref.ill_conditioned import ill_conditioned_dot

CASES = [(op, case) for op in matmul_ref.OPS for case in op.cases()]
DTYPES = ("float16", "bfloat16", "float32", "float64")


def dtypes_to_run(case):
    """All of them for small cases; one or two for the large ones."""
    if case.regime == "seed_linear":
        return ("float32",)
    return ("bfloat16", "float64") if case.parameters.get("K") == 65536 else case.dtypes


def measured_condition(x, y):
    """2|x|.|y| / |x.y| in exact arithmetic."""
    products = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True)]
    return float(2 * sum(map(abs, products)) / abs(sum(products)))


def assert_plain_is_inside(answer, allowed, plain):
    """In float64 where that suffices, and exactly where the answer is scaled (small arrays)."""
    got = to_float64(plain)
    special = ~np.isfinite(answer.hi)
    assert np.array_equal(got[special], answer.hi[special], equal_nan=True)
    judged = ~special & np.isfinite(allowed)
    plainly = judged & (answer.scale == 0)
    with np.errstate(all="ignore"):
        error = np.abs((got - answer.hi) - answer.lo)
    assert (error[plainly] <= (allowed + answer.radius)[plainly]).all()
    for index in np.argwhere(judged & (answer.scale != 0)):
        low, high = answer.lower_upper(tuple(index))
        value, room = Fraction(got[tuple(index)]), Fraction(allowed[tuple(index)])
        assert low - room <= value <= high + room


@pytest.mark.parametrize(("op", "case"), CASES, ids=[case.name for _, case in CASES])
def test_each_case_is_certified_and_the_plain_algorithm_is_inside_its_bound(op, case):
    for dtype in dtypes_to_run(case):
        inputs, params = case.build(dtype)
        format = formats.get(dtype)
        for direction in case.directions:
            answers = op.evaluate(direction, inputs, params, ("rounding", format))
            allowed = op.bound(direction, inputs, params, format)
            condition = op.condition(direction, inputs, params)
            plain = op.plain(direction, inputs, params, format)
            names = set(op.names(direction))
            assert set(answers) == set(allowed) == set(condition) == set(plain) == names
            for name, answer in answers.items():
                assert answer.round(format)[1].all()
                shapes = {part[name].shape for part in (allowed, condition, plain)}
                assert shapes == {answer.shape}
                assert (np.isnan(allowed[name]) <= ~np.isfinite(answer.hi)).all()
                assert plain[name].dtype == format.storage
                assert_plain_is_inside(answer, allowed[name], plain[name])


def test_names_are_unique_and_carry_the_seed():
    names = [case.name for _, case in CASES]
    assert len(set(names)) == len(names) > 60
    assert all(f"seed={case.seed}]" in case.name for _, case in CASES)
    assert all(case.name.startswith(f"{op.name}/{case.regime}[") for op, case in CASES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_case_is_the_same_every_time_and_in_the_dtype(dtype):
    for _, case in CASES[:12]:
        first, second = case.build(dtype)[0], case.build(dtype)[0]
        for name, array in first.items():
            assert array.dtype == formats.get(dtype).storage
            assert array.tobytes() == second[name].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("condition", [1e2, 1e6, 1e10, 1e14])
def test_ill_conditioned_products_have_the_requested_condition(dtype, condition):
    for terms in (64, 101):
        x, y = ill_conditioned_dot(np.random.default_rng(1), terms, 3, condition, dtype)
        for j in range(3):
            assert 0.9 <= measured_condition(x, y[:, j]) / condition <= 1.1


def test_the_cancelled_case_has_exact_zeros_only():
    (case,) = [c for _, c in CASES if c.name.startswith("matmul/specials[kind=cancelled")]
    inputs, _ = case.build("float32")
    answer = matmul_ref.forward(inputs["a"], inputs["b"], certify=("rounding", "float32"))
    assert answer.exact_zero.all()
