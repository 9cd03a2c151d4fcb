"""A fault in whole parts of a batch is attributed to the run that has it, or to none."""

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
LOSSES = RNG.uniform(1.0, 1.5, ROWS).astype(np.float32)  # of each row; their mean is minimised
WEIGHT = RNG.standard_normal((WIDTH, INNER)).astype(np.float32)
PAIR = Matched({"layer": "layer"}, {"w": "w"}, (), ())


def layer(name: str, kind: str) -> Layer:
    return Layer(name, kind, kind, 1, True, True, {}, {}, {}, ())


def run(
    parts: list[list[slice]], counted: list[float], scale: float = 1.0, reported: float = 1.0,
    captured: bool = True,
) -> Any:  # fmt: skip
    """A run whose rank r has a call for each of parts[r], with cotangents of `scale` DY; its update
    receives each rank's gradient times `counted`. It reports `reported` times its ranks' own
    losses; `captured`: the loss is a captured layer."""
    ranks: list[Any] = []
    gradients = [sum((X[rows].T @ (scale * DY[rows]) for rows in slices), 0.0) for slices in parts]
    reduced = sum(weight * own for weight, own in zip(counted, gradients, strict=True))
    for slices, own in zip(parts, gradients, strict=True):
        grads = {"backward": own, "update": reduced}
        calls = [
            LayerCall("layer", k, {}, {"0": X[rows]}, {}, {"0": np.float32(scale) * DY[rows]})
            for k, rows in enumerate(slices)
        ]
        shares = [np.float32(scale * len(LOSSES[rows]) / len(LOSSES)) for rows in slices]
        losses = [
            LayerCall("loss", k, {}, {"0": LOSSES[rows].mean()}, {}, {"0": share})
            for k, (rows, share) in enumerate(zip(slices, shares, strict=True))
        ]
        mean = np.concatenate([LOSSES[rows] for rows in slices] or [LOSSES]).mean()
        recorded = {"layer": calls, "loss": losses if captured else []}
        named = {f"gradients/w/{when}": np.float32(grads[when]) for when in grads}
        tensors = StepTensors(named, {})
        tensors.calls = lambda name, recorded=recorded: recorded[name]
        ranks.append(
            SimpleNamespace(
                steps=(0,), tensors=lambda step, tensors=tensors: tensors, parameters={"w": None},
                lines=[SimpleNamespace(step=0, loss=reported * float(mean), rows=None)],
                layers={"layer": layer("layer", "Linear"), "loss": layer("loss", "MSELoss")},
                world_size=len(parts), contains=lambda name: False,
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
        (run([[slice(0, 3), slice(3, 6)]], [0.5], 2.0), "sum_of_parts", 2),  # clipped behind it
        (run([[slice(0, 4)], [slice(4, 6)]], [0.75, 1.5]), "mean_of_means", 2),
        (run([[slice(0, 4)], [slice(4, 6)]], [1.5, 3.0]), "sum_of_parts", 2),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_the_factor_is_named_whichever_run_comes_first(
    other: Any, word: str, parts: int, first: bool
) -> None:
    factor = cause(*((other, ONE) if first else (ONE, other)), 0, PAIR)
    assert factor is not None
    assert (factor.word, factor.run, factor.details["parts"]) == (word, "AB"[not first], parts)
    assert factor.sure


LESS = run(WHOLE, [1.0], 0.5)  # descends half the gradient of its own loss
SUM, SUM_UNSEEN = (run(HALVES, [2.0, 2.0], captured=captured) for captured in (True, False))
MEAN_UNSEEN, LESS_UNSEEN = (run(WHOLE, [1.0], scale, captured=False) for scale in (1.0, 0.5))
RIGHT_UNSEEN = run(HALVES, [1.0, 1.0], captured=False)


@pytest.mark.parametrize(
    ("a", "b", "blamed"),
    [
        (ONE, SUM_UNSEEN, "B"),
        (MEAN_UNSEEN, SUM, "B"),
        (LESS, RIGHT_UNSEEN, "A"),
        (LESS_UNSEEN, run(HALVES, [1.0, 1.0]), "A"),
        (MEAN_UNSEEN, SUM_UNSEEN, ""),
        (LESS_UNSEEN, RIGHT_UNSEEN, ""),
        (ONE, run(HALVES, [2.0, 2.0], reported=2.0), ""),  # both descend the loss that they report
        (*(run(*how, reported=3.0) for how in ((WHOLE, [1.0], 0.5), (HALVES, [1.0, 1.0]))), ""),
    ],
)
def test_one_run_with_its_loss_is_enough_and_without_any_neither_is_blamed(
    a: Any, b: Any, blamed: str
) -> None:
    for pair, run in (((a, b), blamed), ((b, a), {"A": "B", "B": "A"}.get(blamed, ""))):
        factor = cause(*pair, 0, PAIR)
        assert factor is not None
        assert (factor.run if factor.sure else "") == run


@pytest.mark.parametrize("shares", [(0.5, 0.5), (2 / 3, 1 / 3)])
def test_a_mean_of_means_is_one_where_each_parts_own_mean_counts_the_same(
    shares: tuple[float, float],
) -> None:
    """Parts of 4 and 2 rows: the second counts twice what it should, or half in the other run."""
    means = run([[slice(0, 4)], [slice(4, 6)]], [0.75, 1.5])
    for rank, share, counted in zip(means.ranks, shares, (0.75, 1.5), strict=True):
        (call,) = rank.tensors(0).calls("loss")
        call.cotangents["0"] = np.float32(share / counted)
    factor = cause(ONE, means, 0, PAIR)
    assert factor is not None
    assert (factor.word, factor.run, factor.sure) == ("mean_of_means", "B", shares[0] == shares[1])


@pytest.mark.parametrize(("scale", "named"), [(2.0**16, True), (2.0**7, True), (8.0, False)])
def test_a_power_of_two_is_a_loss_scale_from_sixteen_on(scale: float, named: bool) -> None:
    expected = FactorCause("loss_scale", "B", {"scale": int(scale)})
    plain = cause(ONE, run(WHOLE, [1.0], scale), 0, PAIR)
    assert plain is not None
    assert (plain == expected) == named
    assert named or (plain.word, plain.run) == ("multiple", "B")


@pytest.mark.parametrize(("rows", "width"), [(32, 5), (16, 4), (3, 64)])
def test_a_sum_for_a_mean_over_a_power_of_two_is_no_loss_scale(
    rows: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("X", "DY"):
        monkeypatch.setitem(globals(), name, np.float32(RNG.standard_normal((rows, width))))
    power = max(2**k for k in range(9) if rows * width % 2**k == 0)
    each = [[slice(0, rows)]]
    assert power > 16
    monkeypatch.setitem(globals(), "LOSSES", RNG.uniform(1.0, 1.5, rows).astype(np.float32))
    pair = [run(each, [1.0], 1 / power), run(each, [1.0])]
    factor = cause(*pair, 0, PAIR)
    assert factor is not None
    assert (factor.word, factor.run) == ("multiple", "A")
    for member in pair:
        member.first.lines[0].loss = None
    assert cause(*pair, 0, PAIR) is None


RANKS = FactorCause("sum_over_ranks", "B", {"parts": 2})


@pytest.mark.parametrize(
    ("cause", "said", "in_chinese"),
    [
        (RANKS, ": B takes the sum over 2 ranks instead of", "：B 对"),
        (replace(RANKS, sure=False), ", or A does the reverse", "或者 A"),
        (FactorCause("multiple", "A", {"factor": 0.5}), "of A receives 1/2 times the", "的 1/2 倍"),
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
