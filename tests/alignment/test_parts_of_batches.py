"""What a run does to whole parts of a batch is named in the run that does it, or not at all."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refkernels.alignment.matching import Matched
from refkernels.alignment.parts import Cause, cause
from refkernels.alignment.run import Call

RNG = np.random.default_rng(5)
ROWS, WIDTH, INNER = 6, 5, 3
X, DY = RNG.standard_normal((2, ROWS, WIDTH)).astype(np.float32)
WEIGHT = RNG.standard_normal((WIDTH, INNER)).astype(np.float32)
PAIR = Matched({"layer": "layer"}, {"w": "w"}, (), ())


def run(parts: list[list[slice]], counted: list[float], scale: float = 1.0) -> Any:
    """A run whose rank r has a call for each of parts[r], with cotangents of `scale` DY; its update
    receives each rank's gradient times `counted`."""
    ranks: list[Any] = []
    gradients = [sum((X[one].T @ (scale * DY[one]) for one in some), 0.0) for some in parts]
    both = sum(c * one for c, one in zip(counted, gradients, strict=True))
    for some, own in zip(parts, gradients, strict=True):
        held = {"backward": own, "update": both}
        calls = [
            Call("layer", k, {}, {"0": X[one]}, {}, {"0": np.float32(scale) * DY[one]}, {})
            for k, one in enumerate(some)
        ]
        tensors = SimpleNamespace(
            calls=lambda name, calls=calls: calls,
            gradient=lambda name, when="update", held=held: (
                np.float32(held[when]) if when in held else None
            ),
        )
        ranks.append(
            SimpleNamespace(
                steps=(0,), tensors=lambda step, tensors=tensors: tensors, lines=(),
                layers={"layer": None}, parameters={"w": None}, world_size=len(parts),
                contains=lambda name: False,
            )
        )  # fmt: skip
    return SimpleNamespace(ranks=tuple(ranks), first=ranks[0])


WHOLE, HALVES = [[slice(0, 6)]], [[slice(0, 3)], [slice(3, 6)]]
ONE = run(WHOLE, [1.0])


@pytest.mark.parametrize(
    ("other", "word", "parts"),
    [
        (run(HALVES, [1.0, 0.0]), "not_reduced", 2),
        (run(HALVES, [2.0, 2.0]), "sum_over_ranks", 2),
        (run([[slice(0, 3), slice(3, 6)]], [2.0]), "sum_of_parts", 2),
        (run([[slice(0, 4)], [slice(4, 6)]], [0.75, 1.5]), "mean_of_means", 2),
    ],
    ids=["not reduced", "ranks", "parts", "means"],
)
@pytest.mark.parametrize("first", [False, True])
def test_it_is_named_whichever_run_comes_first(
    other: Any, word: str, parts: int, first: bool
) -> None:
    found = cause(*((other, ONE) if first else (ONE, other)), 0, PAIR)
    assert found is not None
    assert (found.word, found.run, found.details["parts"]) == (word, "AB"[not first], parts)


@pytest.mark.parametrize(("scale", "named"), [(2.0**16, True), (2.0**7, True), (8.0, False)])
def test_a_power_of_two_is_a_loss_scale_from_sixteen_on(scale: float, named: bool) -> None:
    expected = Cause("loss_scale", "B", {"scale": int(scale)})
    assert cause(ONE, run(WHOLE, [1.0], scale), 0, PAIR) == (expected if named else None)


@pytest.mark.parametrize(("rows", "width"), [(32, 5), (16, 4), (3, 64)])
def test_a_sum_for_a_mean_over_a_power_of_two_is_no_loss_scale(
    rows: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("X", "DY"):
        values = RNG.standard_normal((rows, width)).astype(np.float32)
        monkeypatch.setitem(globals(), name, values)
    power = max(2**k for k in range(9) if rows * width % 2**k == 0)
    each = [[slice(0, rows)]]
    assert power > 16
    assert cause(run(each, [1.0], 1 / power), run(each, [1.0]), 0, PAIR) is None


def test_a_layer_that_one_rank_does_not_call_is_compared_still() -> None:
    other = run([[], [slice(0, 6)]], [1.0, 1.0])
    gradients = [RNG.standard_normal((WIDTH, WIDTH)), X.T @ DY]
    for rank, own in zip(other.ranks, gradients, strict=True):
        held = {"backward": np.float32(own), "update": np.float32(gradients[0] + 2 * gradients[1])}
        rank.tensors(0).gradient = lambda name, when="update", held=held: held.get(when)
    assert cause(other, ONE, 0, PAIR) == Cause("sum_over_ranks", "A", {"parts": 2})
