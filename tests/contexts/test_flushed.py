"""Subnormal numbers as zeros, in every operation of a kernel."""

import numpy as np

from refkernels.contexts.composed import Flushed


def test_subnormal_results_and_inputs_are_flushed_with_their_sign() -> None:
    xp = Flushed("float32")
    tiny = np.float32(2.0**-126)
    x = xp.array(np.array([tiny, -tiny / 2, 1.0, -0.0], np.float32))
    assert xp.store(x).data.tolist() == [tiny, 0.0, 1.0, 0.0]
    half = (x * xp.number(0.5)).data
    assert half.tolist() == [0.0, 0.0, 0.5, 0.0]
    assert np.signbit(half).tolist() == [False, True, False, True]
    terms = xp.array(
        np.array([[1.5 * tiny, -tiny, tiny, 3.0], [tiny, tiny, -tiny, 0.0]], np.float32)
    )
    assert xp.sum(terms).data.ravel().tolist() == [np.float32(3.0), tiny]
    assert xp.cumsum(terms).data[0].tolist() == [1.5 * tiny, 0.0, tiny, np.float32(3.0)]
    assert xp.cumsum(xp.array(np.zeros((2, 0), np.float32))).shape == (2, 0)
