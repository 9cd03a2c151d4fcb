"""Long sums of the working precision are NumPy's partial sums, bit for bit."""

from typing import Any

import numpy as np
import pytest

from refkernels.contexts import RoundedArithmetic, working


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["sequential", "reversed", "random"])
def test_the_kernel_gives_the_bits_of_partial_sums(
    dtype: str, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    terms = (rng.standard_normal((3, 5, 4096)) * np.exp2(rng.integers(-60, 60, 4096))).astype(dtype)
    terms[0, 0, 5], terms[0, 1, 7:9] = np.inf, (np.inf, -np.inf)
    terms[0, 2], terms[0, 3, 9], terms[0, 4] = -0.0, np.nan, np.finfo(dtype).max
    found = []
    for many in (1, 1 << 40):
        monkeypatch.setattr(working, "_MANY", many)
        xp = RoundedArithmetic(dtype, order=order)
        found.append(np.asarray(xp.sum(xp.array(terms)).data)[..., 0])
    assert found[0].dtype == np.dtype(dtype)
    np.testing.assert_array_equal(*found)
    number = ~np.isnan(found[0])
    assert found[0][number].tobytes() == found[1][number].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_by_the_kernel_is_that_of_partial_sums(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 1, 40, 300), (3, 300, 9)))
    found = []
    for many in (1, 1 << 40):
        monkeypatch.setattr(working, "_MANY", many)
        xp = RoundedArithmetic(dtype)
        found.append(np.asarray(xp.matmul(xp.array(a), xp.array(b)).data))
    assert found[0].tobytes() == found[1].tobytes()
