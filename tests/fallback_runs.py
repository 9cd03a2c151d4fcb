"""Both ways to an answer: by kernels, and by their fallbacks in NumPy (`arithmetic.small`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refkernels.arithmetic import small


def both(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any], *arguments: Any, **settings: Any
) -> tuple[Any, Any]:
    """What run answers by kernels and by fallbacks, each of which had every element."""
    answers = []
    for elements in (0, 1 << 60):
        with monkeypatch.context() as patch:
            patch.setattr(small, "allowance", small.Allowance(elements))
            answers.append(run(*arguments, **settings))
            used = small.allowance.asked
    assert used > 0, "no fallback was asked"
    return answers[0], answers[1]


def same_bits(a: Any, b: Any) -> bool:
    """Equal in dtype, shape and bits; a NaN is any NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "iub":
        return np.array_equal(a, b)
    with np.errstate(invalid="ignore"):
        a, b = a.astype(np.float64), b.astype(np.float64)
    signs = (np.signbit(a) == np.signbit(b)) | np.isnan(a)
    return np.array_equal(a, b, equal_nan=True) and bool(signs.all())
