"""The assumption about NumPy's BLAS is checked, and no certified product skips the check."""

import ast
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from waiting import HANGS

import refkernels
from refkernels.arithmetic import blas
from refkernels.contexts.ball import Ball
from refkernels.contexts.bound import Bound

PACKAGE = Path(refkernels.__file__).parent


def strassen(left, right, out=None):
    """One step of it, at the middle of even shapes."""
    if any(n % 2 for n in (*left.shape[-2:], right.shape[-1])):
        return np.matmul(left, right, out=out)
    m, k, n = left.shape[-2] // 2, left.shape[-1] // 2, right.shape[-1] // 2
    a, b, c, d = (left[..., i, j] for i in halves(m) for j in halves(k))
    e, f, g, h = (right[..., i, j] for i in halves(k) for j in halves(n))
    p = [(a + d) @ (e + h), (c + d) @ e, a @ (f - h), d @ (g - e), (a + b) @ h]
    p += [(c - a) @ (e + f), (b - d) @ (g + h)]
    top = np.concatenate([p[0] + p[3] - p[4] + p[6], p[2] + p[4]], axis=-1)
    low = np.concatenate([p[1] + p[3], p[0] - p[1] + p[2] + p[5]], axis=-1)
    return np.concatenate([top, low], axis=-2)


def halves(n):
    return slice(None, n), slice(n, None)


def in_float32(left, right, out=None):
    return (left.astype(np.float32) @ right.astype(np.float32)).astype(np.float64)


UNCONVENTIONAL = [strassen, in_float32]


@pytest.fixture(params=UNCONVENTIONAL)
def other_blas(request, monkeypatch):
    look = blas.conventional
    monkeypatch.setattr(blas, "multiply", request.param)
    look.cache_clear()
    yield request.param
    look.cache_clear()


def test_numpys_blas_is_conventional_here():
    for shape in ((1, 1, 1), (1, 1024, 1), (64, 64, 64), blas.TILE):
        assert blas.conventional(*shape), shape


def test_a_blas_that_does_not_add_each_elements_own_terms_is_detected(other_blas):
    assert not blas.conventional(64, 64, 64)


def uneven(rng, batch, rows, terms, columns):
    """Blocks of very different sizes, which Strassen's sums mix."""
    left, right = rng.standard_normal((*batch, rows, terms)), rng.standard_normal((terms, columns))
    left[..., : rows // 2, : terms // 2] *= 2.0**60
    right[: terms // 2, : columns // 2] *= 2.0**60
    return left, right


def holds_all(ball, left, right):
    """Whether every element of the ball's product is inside, by rational arithmetic."""
    inside = []
    for at in np.ndindex(ball.mid.shape):
        row, column = left[at[:-1]], right[:, at[-1]]
        exact = sum(
            (Fraction(x) * Fraction(y) for x, y in zip(row, column, strict=True)), Fraction()
        )
        inside.append(abs(Fraction(ball.mid[at]) - exact) <= Fraction(ball.radius[at]))
    assert inside
    return all(inside)


SHAPES = [((), 4, 4, 4), ((3,), 2, 6, 8), ((), 8, 2, 16)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_balls_product_holds_the_truth_whatever_the_blas(other_blas, shape):
    left, right = uneven(np.random.default_rng(7), *shape)
    xp = Ball()
    assert holds_all(xp.matmul(xp.array(left), xp.array(right)), left, right)


def test_without_the_check_it_would_not(other_blas, monkeypatch):
    monkeypatch.setattr(blas, "conventional", lambda *shape: True)
    left, right = uneven(np.random.default_rng(7), *SHAPES[0])
    xp = Ball()
    assert not holds_all(xp.matmul(xp.array(left), xp.array(right)), left, right)


def test_a_bound_of_a_product_is_no_smaller_on_another_blas(other_blas, monkeypatch):
    left, right = uneven(np.random.default_rng(7), (), 4, 6, 8)
    errors = []
    for multiply in (other_blas, np.matmul):
        monkeypatch.setattr(blas, "multiply", multiply)
        blas.conventional.cache_clear()
        xp = Bound("float32")
        errors.append(xp.matmul(xp.array(left), xp.array(right)).error)
    np.testing.assert_allclose(errors[0], errors[1], rtol=2.0**-48)  # K = 6 terms, in other orders


@pytest.mark.parametrize(
    ("rows", "terms", "columns"), [(3, 2500, 5), (600, 2, 1100), (0, 3, 2), (2, 0, 3)]
)
def test_a_product_larger_than_a_tile_is_the_product(rows, terms, columns):
    rng = np.random.default_rng(3)
    left = rng.integers(-9, 10, (rows, terms)).astype(float)
    right = rng.integers(-9, 10, (terms, columns)).astype(float)
    np.testing.assert_array_equal(blas.product(left, right), left @ right)  # exact in any order


def products_in(path):
    """The lines where a file multiplies matrices by NumPy itself."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        by_operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        by_name = (
            isinstance(node, ast.Attribute)
            and node.attr in ("matmul", "dot", "tensordot", "inner", "vdot")
            and isinstance(node.value, ast.Name)
            and node.value.id == "np"
        )
        if by_operator or by_name:
            yield node.lineno


EXACT_OBJECTS = Path("contexts/objects.py")  # rationals and Arb's numbers, which no BLAS takes
ROOMS = (
    "arithmetic", "attention_ref", "contexts", "elementwise", "layernorm_ref", "matmul_ref",
    "norm_ref", "ops",
)  # fmt: skip


def test_what_is_certified_multiplies_matrices_by_blas_product_alone():
    files = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    assert len(files) > 60
    multiplying = {str(path.relative_to(PACKAGE)) for path in files if any(products_in(path))}
    assert multiplying == {"arithmetic/blas.py", str(EXACT_OBJECTS)}


def threads():
    return next(
        i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"
    )


def by_threads(left, right, out=None):
    """A BLAS that adds backwards on several threads."""
    if threads() == 1:
        return np.matmul(left, right)
    return np.matmul(left[..., ::-1], right[..., ::-1, :])


@pytest.fixture
def order_of_threads(monkeypatch):
    assert "blas" in {info["user_api"] for info in threadpoolctl.threadpool_info()}
    monkeypatch.setattr(blas, "multiply", by_threads)
    blas.conventional.cache_clear()
    yield
    blas.conventional.cache_clear()


def on_threads(number, task):
    with threadpoolctl.threadpool_limits(number, user_api="blas"):
        result = task()
        assert threads() == number  # as before
    return result


def test_a_product_has_the_same_bits_on_any_number_of_blas_threads(order_of_threads):
    rng = np.random.default_rng(11)
    left, right = rng.standard_normal((3, 7, 201)), rng.standard_normal((201, 5))
    products = [on_threads(n, lambda: blas.product(left, right)) for n in (1, 2)]
    assert products[0].tobytes() == products[1].tobytes()
    unguarded = [on_threads(n, lambda: by_threads(left, right)) for n in (1, 2)]
    assert unguarded[0].tobytes() != unguarded[1].tobytes()


def test_threads_share_the_limit_and_the_last_one_out_lifts_it():
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with blas.on_one_thread():
            inside.set()
            assert leave.wait(HANGS)
            return threads()

    def meanwhile():
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(stay)
            assert inside.wait(HANGS)
            with blas.on_one_thread():
                assert threads() == 1
            assert threads() == 1  # the other is still inside
            leave.set()
            assert future.result() == 1

    on_threads(2, meanwhile)
