"""The tolerances accept every error that the bound permits, and no such pair is much smaller."""

import numpy as np
import pytest
from command_helpers import said
from hypothesis import given
from hypothesis import strategies as st

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.testing import Tolerance, tolerances

RNG = np.random.default_rng(3)
X = RNG.standard_normal((5, 33)).astype(np.float32)
QUESTIONS = [
    ("softmax", {"x": 10 * X}, "forward"),
    ("layernorm", {"x": X, "weight": X[0]}, "forward"),
    ("layernorm", {"x": X, "weight": X[0], "dy": X[::-1].copy()}, "backward"),
    ("matmul", {"a": X, "b": X.T.copy()}, "forward"),
    ("gelu", {"x": X}, "forward"),
    ("sum", {"x": X.astype(np.float16)}, "forward"),
]


@pytest.mark.parametrize(("op", "inputs", "direction"), QUESTIONS)
def test_every_error_within_the_bound_passes_allclose(op, inputs, direction):
    record = registry.get(op)
    format = formats.of(next(iter(inputs.values())))
    bounds = record.bound(direction, inputs, record.params, format)
    exact = record.evaluate(direction, inputs, record.params)
    answer = tolerances(op, inputs, direction=direction)
    assert set(answer) == set(exact)
    for name, tolerance in answer.items():
        z = exact[name].hi
        for sign in (1, -1):
            got = z + sign * bounds[name] * (1 - 1e-12)
            assert np.allclose(got, z, rtol=tolerance.rtol, atol=tolerance.atol), name
        smaller = tolerance.rtol * 0.8, tolerance.atol * 0.8
        assert not np.allclose(z + bounds[name], z, *smaller), name


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(1e-9, 1.0)), min_size=1, max_size=12))
def test_no_pair_allows_much_less_on_average(points):
    from refkernels.testing.tolerances import _atol, _best_rtol

    size, bound = (np.array(column) for column in zip(*points, strict=True))
    rtol = _best_rtol(size, bound)
    least = _atol(rtol, size, bound) + rtol * size.mean()
    slopes = [b / z for z, b in points if z > 0] + [
        (b - c) / (z - y) for z, b in points for y, c in points if z != y
    ]
    for candidate in [0.0, *(slope for slope in slopes if 0 <= slope < np.inf)]:
        assert least <= (_atol(candidate, size, bound) + candidate * size.mean()) * (1 + 1e-6)
    assert (bound <= _atol(rtol, size, bound) + rtol * size).all()


@given(st.floats(0, 1e300))
def test_a_tolerance_is_rounded_up_to_two_digits(value):
    from refkernels.testing.tolerances import _rounded_up

    rounded = _rounded_up(value)
    assert value <= rounded <= max(1.1 * value, 5e-324)
    assert rounded == float(f"{rounded:.1e}")


def test_a_bound_below_the_normal_numbers_has_a_tolerance():
    (tolerance,) = tolerances("gelu", {"x": X[:2].astype(float), "dy": np.full((2, 33), 1e-320)},
                              direction="backward").values()  # fmt: skip
    assert 0.0 < tolerance.atol < 1e-318


def test_where_no_tolerance_is_right_there_is_none():
    huge = np.array([1e30, -1e30], np.float32)
    with pytest.raises(ValueError, match="no tolerance is right"):
        tolerances("cosh", {"x": huge})
    assert tolerances("sin", {"x": X[:0]}) == {"y": Tolerance(0.0, 0.0, 0.0)}
    with pytest.raises(ValueError, match="did you mean 'softmax'"):
        tolerances("softmaxx", {"x": X})


def test_the_command_draws_inputs_and_refuses_what_is_no_shape():
    def run(*words):
        return said("tolerances", *words)

    done = run("softmax", "--shape", "x=4,10", "--dtype", "bfloat16", "--json")
    x = np.random.default_rng(0).standard_normal((4, 10)).astype(formats.get("bfloat16").dtype)
    assert done.exit_code == 0
    assert str(tolerances("softmax", {"x": x})["y"].rtol) in done.output
    assert "atol" in run("softmax", "--shape", "x=4,10").output
    for words, reason in (
        (["softmax", "--shape", "x=-3"], "is not NAME=LENGTH"),
        (["softmax", "--shape", "x=99999999,99999999"], "more than"),
        (["softmax", "--shape", "x=3", "--shape", "x=4"], "given twice"),
        (["softmax"], "needs 'x'"),
        (["softmax", "--shape", "x=3", "--dtype", "tf32"], "not a format of arrays"),
    ):
        refused = run(*words)
        assert refused.exit_code == 2
        assert reason in refused.output


@pytest.mark.parametrize(
    "words",
    [
        ["cross_entropy", "--shape", "x=8,10", "--shape", "target=8"],
        ["embedding", "--shape", "weight=10,4", "--shape", "indices=5"],
        ["dropout", "--shape", "x=3,7", "--shape", "mask=3,7", "--param", "p=0.5"],
        ["log", "--shape", "x=3,7"],
        [
            "adam",
            *(word for name in ("param", "grad", "m", "v") for word in ("--shape", f"{name}=7")),
        ],
    ],
)
def test_the_command_draws_what_the_op_takes(words):
    done = said("tolerances", *words)
    assert done.exit_code == 0, done.output
