"""Tensors in layers and random numbers in functions that no capture shows blame no right run."""

from collections.abc import Callable
from typing import Any

import pytest

from refkernels.alignment import align
from refkernels.alignment.run import Run
from refkernels.reporting.alignment import page

FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")


@pytest.mark.usefixtures("judged_once")
@pytest.mark.parametrize(
    "framework",
    [pytest.param(framework, marks=pytest.mark.framework(framework)) for framework in FRAMEWORKS],
)
def test_class_weights_and_functional_dropout_are_not_another_definition(
    framework: str, small_runs: Callable[[str], Any]
) -> None:
    folder = small_runs(framework).folder
    weighted = align(folder / "weighted")
    assert weighted.verdict.word != "different", page.headline(weighted.to_dict())
    judged = {(judgement.op, judgement.verdict) for judgement in weighted.local[0].judgements}
    losses = {op for op, verdict in judged if verdict in ("rounding", "correctly_rounded")}
    assert losses >= {"cross_entropy", "nll", "bce_with_logits"}
    first, second, sure = (Run.read(folder / name) for name in ("drops_1", "drops_2", "sure"))
    for run, drawn in ((first, True), (sure, False)):
        draws = run.first.draws
        assert (draws.outside, draws.before, draws.layers) == (drawn, False, ())
    alignment = align(first, second)
    assert alignment.verdict.word == "undecidable", page.headline(alignment.to_dict())
    assert align(sure, sure).verdict.word != "different"
