"""Where a program is too deep for balls, its answer is estimated, and said to be so."""

import itertools
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from documents import call, program, tensor

from refkernels.frameworks.gateway import Reply
from refkernels.op import Case
from refkernels.programs.estimate import EstimateWarning
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target
from refkernels.runs.measurement.unit import judged


def chain(layers: int, rows: int, width: int, weights: Any) -> Any:
    """x w w w ..., as the exporter writes it."""
    names = ["x", *(f"mm{k}" for k in range(layers))]
    nodes = [
        call(name, "aten.mm.default", [{"node": before}, {"node": "w"}], tensor((rows, width)))
        for before, name in itertools.pairwise(names)
    ]
    arrays = {"x": np.ones((rows, width), np.float32), "w": weights}
    return program(nodes, arrays, ("input", "parameter"))


def test_a_deep_programs_answer_is_near_the_exact_one_and_said_to_be_estimated() -> None:
    rng, layers, rows, width = np.random.default_rng(0), 64, 4, 48
    weights = np.linalg.qr(rng.standard_normal((width, width)))[0].astype(np.float32)
    x = rng.standard_normal((rows, width)).astype(np.float32)
    with pytest.warns(EstimateWarning, match=f"{rows * width} exact values are estimated"):
        y = (op := chain(layers, rows, width, weights)).evaluate("forward", {"x": x}, {})["y"]
    case = Case("deep", op.name, "normal", {}, 0, lambda _: ({"x": x}, {}))
    target = Target(cast(Any, None), "own", "1", "cpu", {}, "own-1")
    reply = Reply("ok", outputs={"y": y.hi.astype(np.float32)})
    (record,) = judged(Unit(op, case, "float32", "forward"), [target], [reply])
    assert "estimated" in record["flags"]
    scale, unit = 2**60, 2 ** (60 * (layers + 1))  # the numbers are multiples of 2^-60
    whole = np.vectorize(lambda v: int(Fraction(float(v)) * scale), otypes=[object])
    exact = whole(x).dot(np.linalg.matrix_power(whole(weights), layers))
    parts = (y.hi, y.lo, np.broadcast_to(y.radius, y.hi.shape), exact)
    for hi, lo, radius, right in zip(*(part.flat for part in parts), strict=True):
        assert abs(Fraction(hi) + Fraction(lo) - Fraction(right, unit)) <= Fraction(radius)
    assert 0 < np.max(y.radius) < 2.0**-80  # far below an ulp of float32, and not exact


def test_a_shallow_programs_answer_is_proven(recwarn: pytest.WarningsRecorder) -> None:
    nodes = [call("y", "aten.exp.default", [{"node": "x"}], tensor((3,)))]
    x = np.array([-2000.0, -900.0, -800.0], np.float32)  # e^x is below all of binary64
    program(nodes, {"x": x}, ("input",)).evaluate("forward", {"x": x}, {})
    weights = np.random.default_rng(1).standard_normal((5, 5)).astype(np.float32)
    chain(2, 3, 5, weights).evaluate("forward", {"x": np.ones((3, 5), np.float32)}, {})
    assert not [w for w in recwarn if issubclass(w.category, EstimateWarning)]
