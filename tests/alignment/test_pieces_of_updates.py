"""Pieces of an update have the judgement of the whole."""

from dataclasses import replace

import numpy as np
import pytest

from refkernels.alignment.local import LocalJudgement, _of_pieces
from refkernels.alignment.question import NotJudged, Place
from refkernels.alignment.updates import _refuse_mixed

PLACE = Place(0, "update", "group 0", 0)
FINE = LocalJudgement(
    PLACE, "adamw", "forward", "AdamW", "param", "rounding", False, 0.5, 0.0, 1, "a"
)  # fmt: skip


def test_the_worst_piece_is_that_of_the_worst_verdict() -> None:
    stray = replace(FINE, verdict="special_value_mismatch", worst="stray")
    beyond = replace(FINE, verdict="exceeds_bound", over_bound=3.0, worst="beyond")
    for two in ([stray, beyond], [beyond, stray]):
        (judgement,) = _of_pieces(two)
        assert (judgement.verdict, judgement.worst, judgement.over_bound) == (
            stray.verdict,
            "stray",
            3.0,
        )


def test_tensors_that_do_not_go_together_are_not_cut() -> None:
    a, wide = np.ones(4, np.float32), np.ones(4)
    fine = [(name, {"param": a, "m": a}, {"param": a}) for name in "ab"]
    _refuse_mixed(fine, ["param", "m"], ["param"])
    with pytest.raises(NotJudged, match="several dtypes"):
        _refuse_mixed([*fine, ("c", {"param": wide, "m": wide}, {"param": wide})],
                      ["param", "m"], ["param"])  # fmt: skip
    with pytest.raises(NotJudged, match="tensors of c have several sizes"):
        _refuse_mixed([*fine, ("c", {"param": a, "m": a[:3]}, {"param": a})],
                      ["param", "m"], ["param"])  # fmt: skip
