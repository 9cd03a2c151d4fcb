"""The options of examples/train_bert.py change what they say, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refkernels.alignment import align


@pytest.fixture
def losses(trained: Callable[[str], Any]) -> dict[str, list[float]]:
    return dict(trained("torch").losses)


@pytest.fixture
def captured(trained: Callable[[str], Any]) -> dict[str, Path]:
    return dict(trained("torch").folders)


@pytest.mark.framework("torch")
def test_a_mean_over_tokens_is_that_of_the_whole_batch(losses: dict[str, list[float]]) -> None:
    """The batch's masked words are not shared out evenly, so a mean of means is another loss. In
    float64 the former agree to a few hundred roundings."""
    whole, by_tokens, by_micro = (losses[name] for name in ("whole", "by_tokens", "by_micro"))
    assert np.max(np.abs(np.subtract(whole, by_tokens))) <= 300 * np.spacing(whole[0])
    assert abs(whole[0] - by_micro[0]) > 1e-4


@pytest.mark.framework("torch")
@pytest.mark.usefixtures("judged_once")
def test_a_loss_without_its_eps_is_named_and_a_hand_written_update_is_not(
    captured: dict[str, Path],
) -> None:
    """1e-5 beside 19 words moves the loss by three floats; no curve of 200 steps shows it."""
    right = captured["adamw"]
    verdict = align(right, captured["loss_without_eps"], steps=[0]).verdict
    assert verdict.first is not None
    assert (verdict.first.topic, verdict.first.where[:6]) == ("forward", "masked")  # the loss
    layer = next(suspect for suspect in verdict.suspects if suspect.where == "masked")
    named = layer.topic, layer.run, layer.details["cause"]
    assert named == ("backward", "B", "eps_differs")
    assert align(right, captured["by_hand"], steps=[0]).verdict.suspects == ()


@pytest.mark.framework("oneflow")
def test_a_graph_clips_and_trains_as_eager_does(trained: Callable[[str], Any]) -> None:
    """In one group both clip by one norm. OneFlow's log_softmax, and so each loss, is off by 4.1e-6
    at most (measured on 50 classes); clipping by parameter would move the loss by 2e-2."""
    losses = trained("oneflow").losses
    eager, graph = losses["eager"], losses["graph"]
    assert eager[0] == graph[0]
    assert eager[1] != eager[0]
    assert abs(eager[1] - graph[1]) <= 2 * 4.1e-6
