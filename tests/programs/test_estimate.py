"""Where a program is too deep for balls, its answer is estimated, and said to be so."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.programs.estimate import EstimateWarning
from refkernels.programs.program import read
from refkernels.programs.program_op import op_of


def chain(layers: int, rows: int, width: int, weights: Any) -> Any:
    """x w w w ..., as the exporter writes it."""
    gives = {"shape": [rows, width], "dtype": "float32"}
    w = {"shape": [width, width], "dtype": "float32", "kind": "parameter", "array": "1"}
    names = ["x", *(f"mm{k}" for k in range(layers))]
    nodes = [
        {"name": name, "operator": "aten.mm.default", "line": "f.py:1", "several": False,
         "arguments": [{"node": before}, {"node": "w"}], "gives": [gives], "value": None}
        for before, name in itertools.pairwise(names)
    ]  # fmt: skip
    document = {
        "schema": 1, "torch": "2.13.0", "custom_gradients": [], "outputs": [names[-1]],
        "inputs": [{"node": "x", "name": "x", "kind": "input", "array": "0", **gives},
                   {"node": "w", "name": "w", **w}],
        "nodes": nodes,
    }  # fmt: skip
    arrays = {"0": np.ones((rows, width), np.float32), "1": weights}
    return op_of(read(document, arrays, "chain"), "chain")


def test_a_deep_programs_answer_is_near_the_exact_one_and_said_to_be_estimated() -> None:
    rng, layers, rows, width = np.random.default_rng(0), 64, 4, 48
    weights = np.linalg.qr(rng.standard_normal((width, width)))[0].astype(np.float32)
    x = rng.standard_normal((rows, width)).astype(np.float32)
    with pytest.warns(EstimateWarning, match=f"{rows * width} exact values are estimated"):
        y = chain(layers, rows, width, weights).evaluate("forward", {"x": x}, {})["y"]
    scale = 2**60  # the numbers are multiples of 2^-60
    exact, w = (
        (np.vectorize(lambda v: int(Fraction(float(v)) * scale), otypes=[object]))(a)
        for a in (x, weights)
    )
    for _ in range(layers):
        exact = exact.dot(w)
    unit = scale ** (layers + 1)
    for hi, lo, radius, right in zip(
        y.hi.flat, y.lo.flat, np.broadcast_to(y.radius, y.hi.shape).flat, exact.flat, strict=True
    ):
        assert abs(Fraction(hi) + Fraction(lo) - Fraction(right, unit)) <= Fraction(radius)
    assert 0 < np.max(y.radius) < 2.0**-80  # far below an ulp of float32, and not exact


def test_a_shallow_programs_answer_is_proven(recwarn: pytest.WarningsRecorder) -> None:
    weights = np.random.default_rng(1).standard_normal((5, 5)).astype(np.float32)
    x = np.ones((3, 5), np.float32)
    chain(2, 3, 5, weights).evaluate("forward", {"x": x}, {})
    assert not [w for w in recwarn if issubclass(w.category, EstimateWarning)]
