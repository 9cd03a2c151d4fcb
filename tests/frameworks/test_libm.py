"""The C library without Numba gives the bits that its compiled loop gives."""

import types
from collections.abc import Callable

import numpy as np

from refkernels.frameworks import catalog
from refkernels.frameworks.gateway import Session


def test_libm_without_numba_gives_the_same_bits(session_for: Callable[[str], Session]) -> None:
    adapter = types.ModuleType("adapter")
    source = catalog.get("libm").framework.source()
    exec(compile(source.replace("import numba", "raise ImportError"), "adapter", "exec"),
         adapter.__dict__)  # fmt: skip
    assert adapter.numba is None
    for dtype in (np.float32, np.float64):
        x = np.array([[0.5, -1.25, np.inf], [-0.0, 1e-30, np.nan]], dtype)
        plain = adapter.forward("expm1", {"x": x}, {})
        compiled = session_for("libm").run("expm1", "forward", {"x": x}).outputs["y"]
        assert plain.dtype == dtype
        np.testing.assert_array_equal(plain, compiled)
        assert np.signbit(plain[1, 0])
