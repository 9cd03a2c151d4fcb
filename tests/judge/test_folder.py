"""A folder of kernels in one run: what is found in it, what is kept, and the leaderboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from refkernels.cli.app import app
from refkernels.frameworks import kernels
from refkernels.judging.folder import RECORDS
from refkernels.reporting.judging.leaderboard import board, write_leaderboard
from refkernels.reporting.reading import read_records

KERNELS = """
import math
import functools
import numpy as np

LIMIT = math.sqrt(2.0)

def reciprocal(x):
    return x.dtype.type(1) / x

def wide_reciprocal(x):
    return (1.0 / x.astype(np.float64)).astype(x.dtype)

zero_reciprocal = functools.partial(np.multiply, 0.0)

def _helper(x):
    return x

def reciprocal_except_on_the_clock(x):
    return reciprocal(x) if x.size < 1 << 17 else x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (tmp_path / "mine" / "broken.py").write_text("def reciprocal(x:\n", encoding="utf-8")
    return tmp_path / "mine"


def test_the_kernels_of_a_file_are_those_whose_names_say_an_op(folder: Path) -> None:
    named = ["reciprocal", "wide_reciprocal", "reciprocal_except_on_the_clock", "zero_reciprocal"]
    assert kernels.functions(folder / "kernels.py") == named
    assert kernels.functions(folder / "kernels.py", "reciprocal") == named
    unnamed = ["reciprocal", "wide_reciprocal", "reciprocal_except_on_the_clock"]
    assert kernels.functions(folder / "kernels.py", "softmax") == unnamed
    with pytest.raises(kernels.KernelError, match="no Python file"):
        kernels.functions(folder / "broken.py")


def test_a_folder_is_judged_once_and_ranked_by_judged_times(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["judge", str(folder), "--out", str(out), "--level", "quick", "--seed", "5"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    records = read_records(out / RECORDS)
    verdicts = {one["kernel"].rpartition(":")[2]: one["verdict"] for one in records}
    assert {name for name, verdict in verdicts.items() if verdict == "right"} == {
        "reciprocal",
        "wide_reciprocal",
    }
    assert verdicts["reciprocal_except_on_the_clock"] == "wrong"
    assert "broken.py" in next(iter(verdicts))
    groups, refused = board(records)
    (group,) = groups
    assert len(refused) == 3
    assert group.op == "reciprocal"
    times = [row.seconds for row in group.rows]
    assert None not in times
    assert times == sorted(times)  # type: ignore[type-var]
    page = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert len(page["groups"][0]["rows"]) == 2
    text = (out / "leaderboard.html").read_text(encoding="utf-8")
    assert "wide_reciprocal" in text
    assert "zero_reciprocal" in text

    refused_again = CliRunner().invoke(app, command)
    assert refused_again.exit_code == 2
    assert "--resume" in refused_again.output
    before = (out / RECORDS).read_bytes()
    assert CliRunner().invoke(app, [*command, "--resume"]).exit_code == 1
    assert (out / RECORDS).read_bytes() == before
    chinese = write_leaderboard(out, "zh")[0].read_text(encoding="utf-8")
    assert "正确的实现" in chinese


def test_a_folder_that_stopped_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["judge", str(folder), "--out", str(out), "--level", "quick", "--seed", "5"]
    CliRunner().invoke(app, command)
    records = read_records(out / RECORDS)
    kept = {**records[1], "seed": 77}
    (out / RECORDS).unlink()
    line = {"kernel": kept["kernel"], "judgement": kept}
    (out / "judgement-journal.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    CliRunner().invoke(app, [*command, "--resume"])
    seeds = {one["kernel"]: one.get("seed") for one in read_records(out / RECORDS)}
    assert seeds[kept["kernel"]] == 77
    assert sorted(str(seed) for seed in seeds.values()) == ["5", "5", "5", "77", "None"]


def test_a_folder_without_kernels_is_refused_in_a_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["judge", str(tmp_path)])
    assert result.exit_code == 2
    assert "has no kernel" in result.output
