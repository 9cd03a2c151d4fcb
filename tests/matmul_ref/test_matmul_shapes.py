"""Shapes follow np.matmul; gradients are summed over broadcast axes, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from refkernels import matmul_ref, registry

SHAPES = [
    ((3, 5), (5, 2)),
    ((1, 5), (5, 2)),
    ((5,), (5,)),
    ((5,), (5, 2)),
    ((3, 5), (5,)),
    ((4, 3, 5), (5,)),
    ((5,), (4, 5, 2)),
    ((4, 3, 5), (4, 5, 2)),
    ((4, 3, 5), (5, 2)),
    ((3, 5), (4, 5, 2)),
    ((2, 1, 3, 5), (4, 5, 2)),
    ((2, 1, 3, 5), (1, 4, 5, 2)),
    ((1, 1, 3, 5), (5, 2)),
    ((3, 0), (0, 2)),
    ((0, 5), (5, 2)),
    ((3, 5), (5, 0)),
    ((0, 3, 5), (5, 2)),
    ((2, 0, 3, 5), (5, 2)),
    ((0,), (0,)),
]


def fractions(array):
    return np.array([Fraction(float(v)) for v in array.ravel()], object).reshape(array.shape)


def assert_exactly(enclosure, truth):
    truth = np.asarray(truth, object)
    assert enclosure.shape == truth.shape
    for index in np.ndindex(truth.shape):
        assert enclosure.contains(index, Fraction(truth[index]))


def zeros(shape):
    return np.full(shape, Fraction(0), object)


def gradients(dc, a, b):
    """Term by term from the definition: c[p] += a[q] b[r] gives da[q] += dc[p] b[r]."""
    da, db = zeros(a.shape), zeros(b.shape)
    wide_a = a[None] if a.ndim == 1 else a
    wide_b = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(wide_a.shape[:-2], wide_b.shape[:-2])
    m, k, n = wide_a.shape[-2], wide_a.shape[-1], wide_b.shape[-1]
    wide_dc = dc.reshape(*batch, m, n)
    at_a = np.broadcast_to(np.arange(a.size).reshape(wide_a.shape), (*batch, m, k))
    at_b = np.broadcast_to(np.arange(b.size).reshape(wide_b.shape), (*batch, k, n))
    for p in np.ndindex(*batch):
        for i, t, j in np.ndindex(m, k, n):
            g, q, r = wide_dc[(*p, i, j)], at_a[(*p, i, t)], at_b[(*p, t, j)]
            da.flat[q] += g * b.flat[r]
            db.flat[r] += g * a.flat[q]
    return da, db


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_forward_and_backward_have_numpy_shapes_and_exact_values(shapes):
    """By the tiers, and by the formula."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape) for shape in shapes)
    dc = rng.standard_normal(np.matmul(a, b).shape)
    da, db = gradients(fractions(dc), fractions(a), fractions(b))
    of_formula = registry.get("matmul").definition
    back = of_formula.evaluate("backward", {"dc": dc, "a": a, "b": b}, {})
    for c, result in (
        (matmul_ref.forward(a, b), matmul_ref.backward(dc, a, b)),
        (of_formula.evaluate("forward", {"a": a, "b": b}, {})["c"], matmul_ref.Backward(**back)),
    ):
        assert c.shape == dc.shape
        if c.size and a.size:
            assert_exactly(c, np.matmul(fractions(a), fractions(b)))
        assert_exactly(result.da, da)
        assert_exactly(result.db, db)


def test_an_empty_sum_is_an_exact_zero():
    c = matmul_ref.forward(np.zeros((2, 0)), np.zeros((0, 3)))
    assert c.shape == (2, 3)
    assert c.exact_zero.all()
    y = matmul_ref.linear(np.zeros((2, 0)), np.zeros((3, 0)), np.array([1.0, 2.0, 3.0]))
    assert (y.hi == [1.0, 2.0, 3.0]).all()


@pytest.mark.parametrize("lead", [(), (4,), (3, 4), (2, 3, 4), (0,)], ids=str)
def test_linear_backward_is_exact_for_any_leading_axes(lead):
    rng = np.random.default_rng(1)
    x, weight, bias = rng.standard_normal((*lead, 5)), rng.standard_normal((3, 5)), np.ones(3)
    y = matmul_ref.linear(x, weight, bias)
    assert y.shape == (*lead, 3)
    dy = rng.standard_normal(y.shape)
    result = matmul_ref.linear_backward(dy, x, weight, bias)
    rows, slopes = fractions(x).reshape(-1, 5), fractions(dy).reshape(-1, 3)
    dweight, dbias, dx = zeros((3, 5)), zeros(3), zeros((len(rows), 5))
    for row, (r, s) in enumerate(zip(rows, slopes, strict=True)):
        dweight, dbias = dweight + np.outer(s, r), dbias + s
        dx[row] = s @ fractions(weight)
    assert_exactly(result.dx, dx.reshape(x.shape))
    assert_exactly(result.dweight, dweight)
    assert_exactly(result.dbias, dbias)


def test_dbias_is_given_without_a_bias():
    dy, x, weight = np.ones((4, 3)), np.ones((4, 5)), np.ones((3, 5))
    assert (matmul_ref.linear_backward(dy, x, weight).dbias.hi == 4).all()
