"""Data-parallel runs of two or four processes over gloo: faults are named, right runs are not."""

import shutil
from pathlib import Path

import pytest
from captured import answer, run_script
from hunting import HUNT

from refkernels.alignment import align
from refkernels.alignment.run import Run
from refkernels.reporting.alignment import page

pytestmark = [pytest.mark.framework("torch"), pytest.mark.usefixtures("judged_once")]
SAME = (
    ("one", "ddp"),
    ("ddp_wrapped", "hand"),
    ("one_masked", "ddp_masked_weighed"),
    ("one", "four_ddp"),
    ("one_masked", "four_ddp_masked_weighed"),
    ("ddp_masked_weighed", "four_ddp_masked_weighed"),
)
PARTED = {  # right, wrong: step, topic, what the headline says of the wrong run
    ("one", "ddp_sum"): ("clip", "{} takes the sum over 2 ranks instead of their mean"),
    ("one", "hand_twice"): ("clip", "is {times} times that of A"),
    ("one_masked", "ddp_masked"): ("clip", "{} takes the mean over 2 parts"),
    ("ddp_masked_weighed", "ddp_masked"): ("backward", "{} takes the mean over 2 parts"),
    ("one", "ddp_shard"): ("ranks", "in ddp\\_shard rank 0 and rank 1 read the same rows"),
    ("one", "nobody"): ("clip", "in {} each of 2 ranks keeps its own gradient"),
    ("ddp", "hand_part"): ("clip", "keeps its own gradient of body.2.weight and 1 more"),
}
TURNED = [  # a run tries one order of each pair
    (names, turned)
    for place, names in enumerate(PARTED)
    for turned in ((False, True) if HUNT > 1 else (place % 2 == 1,))
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    names = dict.fromkeys(name for pair in (*SAME, *PARTED) for name in pair)
    answer(run_script("torch", folder, "two_processes.py", *names))
    return folder


def test_each_process_records_its_own_rank(runs: Path) -> None:
    run = Run.read(runs / "ddp")
    assert run.remarks == ()
    ranks = [(rank.rank, rank.world_size, rank.complete) for rank in run.ranks]
    assert ranks == [(0, 2, True), (1, 2, True)]
    own, received = (
        [rank.tensors(0).gradient("body.0.weight", when) for rank in run.ranks]
        for when in ("backward", "update")
    )
    assert (own[0] != own[1]).any()
    assert (received[0] == received[1]).all()
    assert run.ranks[0].lines[0].rows != run.ranks[1].lines[0].rows
    shutil.copytree(runs / "ddp" / "rank_1", runs / "alone" / "rank_1")
    assert "lacks these ranks of 2: 0." in Run.read(runs / "alone").remarks[0]


@pytest.mark.parametrize("names", SAME, ids=" ".join)
def test_gradients_reduced_rightly_are_one_training(names: tuple[str, str], runs: Path) -> None:
    alignment = align(*(runs / name for name in names))
    assert alignment.verdict.word == "same", page.headline(alignment.to_dict())


@pytest.mark.parametrize(("names", "turned"), TURNED)
def test_what_ranks_do_wrong_is_named(names: tuple[str, str], turned: bool, runs: Path) -> None:
    """In the run that does it, whichever comes first."""
    alignment = align(*(runs / name for name in (reversed(names) if turned else names)))
    topic, says = PARTED[names]
    assert alignment.verdict.word == "different"
    assert alignment.verdict.first is not None
    assert (alignment.verdict.first.step, alignment.verdict.first.topic) == (0, topic)
    headline = page.headline(alignment.to_dict())
    assert says.format("BA"[turned], times="2" if turned else "1/2") in headline
    assert "the reverse" not in headline
