"""The options of examples/train_bert.py change what they say, and nothing else."""

import json
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


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "rank_0" / "steps.jsonl").read_text().splitlines()]


@pytest.mark.framework("torch")
def test_a_mean_over_tokens_is_that_of_the_whole_batch(losses: dict[str, list[float]]) -> None:
    """The batch's masked words are not shared out evenly, so a mean of means is another loss. In
    float64 the former agree to a few hundred roundings."""
    whole, by_tokens, by_micro = (losses[name] for name in ("whole", "by_tokens", "by_micro"))
    assert np.max(np.abs(np.subtract(whole, by_tokens))) <= 300 * np.spacing(whole[0])
    assert abs(whole[0] - by_micro[0]) > 1e-4


@pytest.mark.framework("torch")
def test_ranks_on_one_shard_train_on_that_shard(
    losses: dict[str, list[float]], captured: dict[str, Path]
) -> None:
    """Four means of one shard are its mean, and each is recorded."""
    assert losses["same_shard"][0] == pytest.approx(losses["first_shard"][0], rel=1e-14)
    values = lines(captured["same_shard"])[0]["values"]
    assert len(values) == 4
    assert len(set(values.values())) == 1


@pytest.mark.framework("torch")
def test_clipping_by_parameter_is_another_update(losses: dict[str, list[float]]) -> None:
    one_group, each_parameter = losses["one_group"], losses["each_parameter"]
    assert one_group[0] == each_parameter[0]
    assert abs(one_group[1] - each_parameter[1]) > 1e-2


@pytest.mark.framework("torch")
def test_bfloat16_is_used(losses: dict[str, list[float]]) -> None:
    """Its rounding shows, and it is a rounding to 8 bits."""
    apart = abs(losses["bfloat16"][0] - losses["one_group"][0])
    assert np.spacing(np.float32(6)) * 4 < apart < 6 * 2.0**-8


@pytest.mark.framework("torch")
def test_the_schedule_is_a_warm_up_and_a_decay(
    losses: dict[str, list[float]], captured: dict[str, Path]
) -> None:
    assert len(losses["adamw"]) == 2
    rates = [line["lr"][0] for line in lines(captured["adamw"])]
    assert rates == pytest.approx([1e-4, 1e-3], rel=1e-15)


@pytest.mark.framework("torch")
@pytest.mark.usefixtures("judged_once")
def test_a_loss_without_its_eps_is_named_and_a_hand_written_update_is_not(
    captured: dict[str, Path],
) -> None:
    """1e-5 beside 19 words moves the loss by three floats; no curve of 200 steps shows it."""
    right = captured["adamw"]
    verdict = align(right, captured["loss_without_eps"], steps=[0]).verdict
    assert verdict.first is not None
    first = verdict.first.step, verdict.first.topic, verdict.first.where
    assert first == (0, "backward", "masked")
    assert verdict.first.run == "B"
    assert verdict.first.source.cause == "eps_differs"  # type: ignore[union-attr]
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
