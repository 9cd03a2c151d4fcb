"""A fault in whole parts of a batch is named by the run that has so many parts."""

from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refkernels.alignment.matching import Matched
from refkernels.alignment.parts import FactorCause, cause
from refkernels.alignment.run import Layer, LayerCall
from refkernels.alignment.steps import StepTensors
from refkernels.alignment.suspect import Suspect
from refkernels.reporting.alignment import page

RNG = np.random.default_rng(5)
ROWS, WIDTH, INNER = 6, 5, 3
X, DY = RNG.standard_normal((2, ROWS, WIDTH)).astype(np.float32)
WEIGHT = RNG.standard_normal((WIDTH, INNER)).astype(np.float32)
PAIR = Matched({"layer": "layer"}, {"w": "w"}, (), ())
LAYER = Layer("layer", "Linear", "Linear", 1, True, True, {}, {}, {}, ())


def run(parts: list[list[slice]], counted: list[float], scale: float = 1.0) -> Any:
    """A run whose rank r has a call for each of parts[r], with cotangents of `scale` DY; its update
    receives each rank's gradient times `counted`."""
    ranks: list[Any] = []
    gradients = [sum((X[rows].T @ (scale * DY[rows]) for rows in slices), 0.0) for slices in parts]
    reduced = sum(weight * own for weight, own in zip(counted, gradients, strict=True))
    for slices, own in zip(parts, gradients, strict=True):
        grads = {"backward": own, "update": reduced}
        calls = [
            LayerCall("layer", k, {}, {"0": X[rows]}, {}, {"0": np.float32(scale) * DY[rows]})
            for k, rows in enumerate(slices)
        ]
        named = {f"gradients/w/{when}": np.float32(grads[when]) for when in grads}
        tensors = StepTensors(named, {})
        tensors.calls, tensors.listed = lambda name, calls=calls: calls, lambda word: ()
        ranks.append(
            SimpleNamespace(
                steps=(0,), tensors=lambda step, tensors=tensors: tensors, parameters={"w": None},
                layers={"layer": LAYER}, world_size=len(parts), contains=lambda name: False,
            )
        )  # fmt: skip
    return SimpleNamespace(ranks=tuple(ranks), first=ranks[0], lines={0: []})


WHOLE, HALVES = [[slice(0, 6)]], [[slice(0, 3)], [slice(3, 6)]]
ONE = run(WHOLE, [1.0])


@pytest.mark.parametrize(
    ("other", "word", "parts"),
    [
        (run(HALVES, [1.0, 0.0]), "not_reduced", 2),
        (run(HALVES, [1.0, 1.0], 2.0), "sum_over_ranks", 2),
        (run([[slice(0, 3), slice(3, 6)]], [2.0]), "sum_of_parts", 2),
        (run([[slice(0, 3), slice(3, 6)]], [0.5], 2.0), "sum_of_parts", 2),  # clipped behind it
        (run([[slice(0, 4)], [slice(4, 6)]], [0.75, 1.5]), "mean_of_means", 2),
        (run([[slice(0, 4)], [slice(4, 6)]], [1.5, 3.0]), "sum_of_parts", 2),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_the_factor_is_named_in_any_order(other: Any, word: str, parts: int, first: bool) -> None:
    factor = cause(*((other, ONE) if first else (ONE, other)), 0, PAIR)
    assert factor is not None
    assert (factor.word, factor.run, factor.details["parts"]) == (word, "AB"[not first], parts)
    assert factor.sure


def test_either_of_two_runs_with_as_many_parts_may_be_the_wrong_one() -> None:
    """A sum for a mean in B, or a mean of a mean in A."""
    both = [[slice(0, 3), slice(3, 6)]]
    factor = cause(run(both, [1.0]), run(both, [2.0]), 0, PAIR)
    assert factor == FactorCause("sum_of_parts", "B", {"parts": 2}, False)
    mean, twice = run(HALVES, [0.5, 0.5]), run(HALVES, [0.25, 0.25])
    half = FactorCause("multiple", "B", {"factor": 0.5})
    assert cause(mean, twice, 0, PAIR) == half  # neither takes the sum over its ranks


@pytest.mark.parametrize(("scale", "named"), [(2.0**16, True), (2.0**7, True), (8.0, False)])
def test_a_power_of_two_is_a_loss_scale_from_sixteen_on(scale: float, named: bool) -> None:
    expected = FactorCause("loss_scale", "B", {"scale": int(scale)})
    found = cause(ONE, run(WHOLE, [1.0], scale), 0, PAIR)
    assert found == (expected if named else FactorCause("multiple", "B", {"factor": scale}))


@pytest.mark.parametrize(("rows", "width"), [(32, 5), (16, 4), (3, 64)])
def test_a_sum_for_a_mean_over_a_power_of_two_is_no_loss_scale(
    rows: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("X", "DY"):
        monkeypatch.setitem(globals(), name, np.float32(RNG.standard_normal((rows, width))))
    power = max(2**k for k in range(9) if rows * width % 2**k == 0)
    each = [[slice(0, rows)]]
    assert power > 16
    pair = [run(each, [1.0], 1 / power), run(each, [1.0])]
    assert cause(*pair, 0, PAIR) == FactorCause("multiple", "B", {"factor": pytest.approx(power)})


RANKS = FactorCause("sum_over_ranks", "B", {"parts": 2})


@pytest.mark.parametrize(
    ("cause", "said", "in_chinese"),
    [
        (RANKS, ": B takes the sum over 2 ranks instead of", "：B 对"),
        (replace(RANKS, sure=False), ", or A does the reverse", "或者 A"),
    ],
)
def test_the_page_says_which_run_it_is_or_that_it_cannot_tell(
    cause: FactorCause, said: str, in_chinese: str
) -> None:
    details = {"what": "update", "apart": 0.5, "factor": None, "cause": asdict(cause)}
    suspect = asdict(Suspect("clip", "Model", kind="parted", details=details))
    english = page.suspect(suspect, page.words_of("en"))
    assert said in english
    assert in_chinese in page.suspect(suspect, page.words_of("zh"))
    assert ("reverse" in english) == (not cause.sure)
