"""Large arrays are answered by generated kernels: no formula falls back on NumPy unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formula_draws import draw
from hunting import HUNT
from numba_threads import each_number_of_threads

import refkernels
from refkernels import registry
from refkernels.contexts import generated
from refkernels.op import Direction
from refkernels.ops import TwoStage, draft, readings
from refkernels.ops.draft import GENERATED

OPS = {name: op for name, op in registry.ops().items() if op.formulas is not None}
WAYS = [
    (name, direction)
    for name, op in OPS.items()
    for direction in ("forward", "backward")
    if direction == "forward" or op.formulas.backward is not None
]

COMPILED = (  # some seconds each: all in a hunt
    WAYS if HUNT > 1 else [("softmax", "backward"), ("rms_norm", "forward"), ("mse", "forward")]
)

BY_NUMPY = {  # sums along a row, products of the others, pairs of a row, steps
    *((f"{what}quantize", "forward") for what in ("", "block_", "table_")),
    *((name, "forward") for name in ("cast", "narrow_step", "rfft")),
    *(
        (name, way)
        for name in ("router", "rotary", "logcumsumexp")
        for way in ("forward", "backward")
    ),
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
def test_every_output_that_has_rows_or_sums_them_is_a_graph_over_rows(
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
        staged = isinstance(op.formulas.of(direction).truth, TwoStage)
        by_kernel = staged or any(question.rows_of.values())
        expected += bool(question.flat and by_kernel)
        op.solve(direction, inputs, op.params, ("rounding", "float32"))
    if (name, direction) in BY_NUMPY:
        assert len(watched.made) < expected
        return
    if op.fast is not None and direction == "forward":  # its own float64 kernel answers first
        assert not watched.made
        return
    assert not watched.refused
    assert len(watched.made) == expected


@pytest.mark.parametrize("name", ["cross_entropy", "nll", "soft_cross_entropy", "masked_lm_loss"])
def test_a_mean_over_weights_enters_the_kernel_of_a_gradient(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The denominator, which all rows share, is a ball that NumPy computes beforehand."""
    op, watched = OPS[name], Watched()
    rng = np.random.default_rng([14, *name.encode()])
    inputs = draw(op, "backward", rng, "float32", "normal", sizes=((5,), 7))
    weights = op.inputs[-1]
    inputs[weights] = rng.uniform(0.5, 2.0, (5,) if weights == "weights" else 7).astype(np.float32)
    question = ("backward", inputs, op.params, ("ulp", "float32", 2.0**-6))
    by_numpy = op.evaluate(*question)["dx"]
    monkeypatch.setattr(draft, "GENERATED", 1)
    compiled = op.evaluate(*question)["dx"]
    np.testing.assert_array_equal(compiled.hi, by_numpy.hi)
    assert np.isfinite(compiled.radius).all()
    monkeypatch.setattr(draft, "generated", watched)
    op.evaluate(*question)
    assert (len(watched.made), watched.refused) == (1, [])


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
            numbers = ~np.isnan(by_numpy.hi)
            assert np.array_equal(numbers, ~np.isnan(compiled.hi))
            near = (
                numbers
                & np.isfinite(by_numpy.radius)
                & np.isfinite(compiled.radius)
                & (by_numpy.scale == compiled.scale)
            )
            off = np.abs((by_numpy.hi - compiled.hi) + (by_numpy.lo - compiled.lo))[near]
            assert np.all(off <= (by_numpy.radius + compiled.radius)[near] * (1 + 2.0**-50))
            compared += int(near.sum())
    assert compared > 0


def _large_loss(reduction: str, weighted: bool) -> Any:
    """Cross entropy of logits of which one is masked, and one label ignored."""
    rng = np.random.default_rng(13)
    x = (3.0 * rng.standard_normal((GENERATED // 64, 65))).astype(np.float32)
    target = rng.integers(0, 64, len(x))
    x[5, 64], target[7] = -np.inf, -100
    weight = rng.uniform(0.5, 2.0, 65).astype(np.float32) if weighted else None
    inputs, params = {"x": x, "target": target, "weight": weight}, {"reduction": reduction}
    return OPS["cross_entropy"].evaluate("forward", inputs, params)["loss"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_of_many_rows_is_the_same_by_kernel_by_numpy_and_on_any_number_of_threads(
    reduction: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = [_large_loss(reduction, weighted) for _ in each_number_of_threads()]
    np.testing.assert_array_equal(*(loss.hi for loss in compiled))
    np.testing.assert_array_equal(*(loss.radius for loss in compiled))
    monkeypatch.setattr(draft, "GENERATED", 1 << 40)
    by_numpy = _large_loss(reduction, weighted)
    np.testing.assert_array_equal(compiled[0].hi, by_numpy.hi)  # mids have the same bits
    np.testing.assert_allclose(compiled[0].radius, by_numpy.radius, rtol=2.0**-30)


def test_a_loss_whose_kernel_leaves_a_row_open_is_numpy_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The label of a masked class: the loss is infinite."""
    x = np.zeros((GENERATED // 64, 65), np.float32)
    x[5, 3] = -np.inf
    target = np.where(np.arange(len(x)) == 5, 3, 0)
    read, known = readings.read, []

    def watched(*question: Any) -> Any:
        known.append(question[-1])
        return read(*question)

    monkeypatch.setattr(readings, "read", watched)
    for label, by_kernel in ((3, False), (4, True)):
        target[5] = label
        loss = OPS["cross_entropy"].evaluate("forward", {"x": x, "target": target}, {})["loss"]
        assert bool(np.isinf(loss.hi)) is not by_kernel
        assert (known.pop() is not None) is by_kernel
