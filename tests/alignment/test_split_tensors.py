"""OneFlow's global tensors: the processes that hold a model together are captured as one run."""

from pathlib import Path

import numpy as np
import pytest
from captured import answer, apart, run_script

from refkernels.alignment import align
from refkernels.alignment.run import Run
from refkernels.alignment.tensors import TensorFile
from refkernels.reporting.alignment import page

pytestmark = [pytest.mark.framework("oneflow"), pytest.mark.usefixtures("judged_once")]
SPLIT = ["data", "tensor"]  # what is split among the processes: the rows, or the weights


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("split")
    answer(run_script("oneflow", folder, "split_tensors.py"))
    return folder


def recorded(run: Path) -> TensorFile:
    return TensorFile(run / "rank_0" / "step_000000.safetensors")


@pytest.mark.parametrize("name", SPLIT)
def test_split_tensors_are_recorded_whole(name: str, runs: Path) -> None:
    split = Run.read(runs / name)
    assert split.remarks == ()
    assert [rank.world_size for rank in split.ranks] == [1]
    assert any("2 processes are recorded as one" in word for word in split.first.not_captured)
    whole, local = recorded(runs / name), recorded(runs / "local_0")
    assert {key: whole[key].shape for key in whole} == {key: local[key].shape for key in local}
    given = [key for key in local if key.startswith("batch/") or key.endswith("/before")]
    assert given
    for key in given:
        np.testing.assert_array_equal(whole[key], local[key])


@pytest.mark.parametrize("name", SPLIT)
def test_a_split_training_is_judged_like_the_local_one(name: str, runs: Path) -> None:
    """Every layer, the loss and the update, of which the processes may hold unadded parts."""
    alone = align(runs / "local_0", runs / "local_1")
    alignment = align(runs / "local_0", runs / name)
    judged = [len(run.judgements) for run in (*alignment.local, *alone.local)]
    assert judged[0] > 0
    assert len(set(judged)) == 1
    words = {alignment.verdict.word, alone.verdict.word}
    assert words in ({"same"}, {"undecidable"}), page.headline(alignment.to_dict())


def test_a_weight_of_a_split_parameter_moves_by_one_ulp(runs: Path) -> None:
    ((_, _, old, new),) = apart(recorded(runs / "tensor"), recorded(runs / "moved"))
    assert new in (np.nextafter(old, np.float32(np.inf)), np.nextafter(old, -np.float32(np.inf)))
