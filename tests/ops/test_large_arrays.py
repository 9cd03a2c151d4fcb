"""Large arrays are answered by generated kernels: no formula falls back on NumPy unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formula_draws import draw
from hunting import HUNT

import refkernels
from refkernels import registry
from refkernels.contexts import generated
from refkernels.contexts.execution import GENERATED
from refkernels.op import Direction
from refkernels.ops import draft

OPS = {name: op for name, op in registry.ops().items() if op.formulas is not None}
WAYS = [
    (name, direction)
    for name, op in OPS.items()
    for direction in ("forward", "backward")
    if direction == "forward" or op.formulas.backward is not None
]

COMPILED = (  # some seconds each: all in a hunt
    WAYS if HUNT > 1 else [("softmax", "backward"), ("rms_norm", "forward")]
)

BY_NUMPY = {  # sums along a row, products of the others, labels that are looked up, shared sums,
    # pairs of a row
    *(("rotary", direction) for direction in ("forward", "backward")),
    *((name, "backward") for name in ("nll", "soft_cross_entropy", "masked_lm_loss")),
    *((name, "backward") for name in ("sum", "mean", "max", "prod", "cumsum")),
    *((name, "forward") for name in ("prod", "cumsum")),
}


class Watched:
    """`contexts.generated`, which keeps whether a formula could be traced, and compiles nothing."""

    def __init__(self) -> None:
        self.made: list[generated.Generated] = []
        self.refused: list[Exception] = []

    def of(self, *question: Any) -> Any:
        try:
            made = generated.of(*question)
            made.empty()
        except generated.Untraceable as refusal:
            self.refused.append(refusal)
            raise
        self.made.append(made)
        raise generated.Untraceable("It is traced, and need not be compiled here.")


@pytest.mark.parametrize(("name", "direction"), WAYS, ids=["-".join(way) for way in WAYS])
def test_every_output_that_has_rows_is_a_graph_over_rows(
    name: str, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    op, watched = OPS[name], Watched()
    monkeypatch.setattr(draft, "generated", watched)
    monkeypatch.setattr(draft, "GENERATED", 1)
    rng = np.random.default_rng([11, *name.encode(), len(direction)])
    expected = 0
    for kind in ("normal", "equal"):
        inputs = draw(op, direction, rng, "float32", kind, sizes=((5,), 7))
        question = op.formulas.question(direction, inputs, {})
        expected += bool(question.flat and any(question.rows_of.values()))
        op.solve(direction, inputs, op.params, ("rounding", "float32"))
    if (name, direction) in BY_NUMPY:
        assert len(watched.made) < expected
        return
    assert not watched.refused
    assert len(watched.made) == expected


@pytest.mark.parametrize("masked", [False, True])
def test_log_softmax_of_a_large_array_is_a_graph_over_rows(
    masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certified form sets the largest element of each row apart, by `take_along_axis`."""
    watched = Watched()
    monkeypatch.setattr(draft, "generated", watched)
    x = np.random.default_rng(4).standard_normal((GENERATED // 100, 101), np.float32)
    if masked:
        x[:, 7] = -np.inf
    OPS["log_softmax"].solve("forward", {"x": x}, {}, "enclosure")
    assert (len(watched.made), watched.refused) == (1, [])


def test_a_formula_that_is_no_graph_over_rows_is_seen_here(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr(draft, "generated", watched)
    monkeypatch.setattr(draft, "GENERATED", 1)
    running = refkernels.oracle(
        lambda xp, x: xp.cumsum(x), "x[... n] -> y[... n]", "n", name="sums"
    )
    running.forward(np.ones((3, 4)))
    assert len(watched.refused) == 1


@pytest.mark.parametrize(("name", "direction"), COMPILED, ids=["-".join(way) for way in COMPILED])
def test_generated_kernels_and_numpy_give_one_answer(
    name: str, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    op, compared = OPS[name], 0
    rng = np.random.default_rng([12, *name.encode(), len(direction)])
    for dtype in ("float32", "float64"):
        inputs = draw(op, direction, rng, dtype, "normal", sizes=((5,), 7))
        answers = []
        for least in (GENERATED, 1):
            monkeypatch.setattr(draft, "GENERATED", least)
            answers.append(op.evaluate(direction, inputs, op.params, ("ulp", dtype, 2.0**-6)))
        for output, by_numpy in answers[0].items():
            compiled = answers[1][output]
            near = (
                np.isfinite(by_numpy.radius)
                & np.isfinite(compiled.radius)
                & (by_numpy.scale == compiled.scale)
            )
            off = np.abs((by_numpy.hi - compiled.hi) + (by_numpy.lo - compiled.lo))[near]
            assert np.all(off <= (by_numpy.radius + compiled.radius)[near] * (1 + 2.0**-50))
            compared += int(near.sum())
    assert compared > 0
