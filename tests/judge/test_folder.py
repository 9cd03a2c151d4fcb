"""A folder of kernels in one run: the kernels found, the records kept, and the leaderboard."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from listing import SEED
from typer.testing import CliRunner

from refkernels.cli.app import app
from refkernels.frameworks import kernels
from refkernels.judging import folder as folders
from refkernels.judging.folder import NOT_JUDGED, RECORDS, judge_all, kernels_in
from refkernels.judging.judgement import Judgement
from refkernels.records.journal import Json
from refkernels.reporting.judging.leaderboard import board, write_leaderboard
from refkernels.reporting.reading import read_records

KERNELS = """
import functools
import numpy as np

LIMIT = 2.0

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (folder / "broken.py").write_text("def reciprocal(x:\n", encoding="utf-8")
    return folder


def command(folder: Path, out: Path, *options: str) -> Any:
    words = f"--level quick --seed {SEED} --out".split()
    return CliRunner().invoke(app, ["judge", str(folder), *words, str(out), *options])


@pytest.fixture
def out(folder: Path, tmp_path: Path) -> Path:
    """What the command leaves, which judges the folder once for all tests."""
    judged = folder.with_name("judged")
    if not judged.exists():
        assert command(folder, judged).exit_code == 1
    return Path(shutil.copytree(judged, tmp_path / "out"))


def test_the_kernels_of_a_file_are_named_after_an_op(folder: Path) -> None:
    named = ["reciprocal", "wide_reciprocal", "reciprocal_except_on_the_clock", "zero_reciprocal"]
    assert kernels.functions(folder / "kernels.py") == named
    assert kernels.functions(folder / "kernels.py", "reciprocal") == named
    unnamed = ["reciprocal", "wide_reciprocal", "reciprocal_except_on_the_clock"]
    assert kernels.functions(folder / "kernels.py", "softmax") == unnamed
    with pytest.raises(kernels.KernelError, match="not a Python file"):
        kernels.functions(folder / "broken.py")


def test_a_folder_is_judged_once_and_ranked_by_judged_times(folder: Path, out: Path) -> None:
    records = read_records(out / RECORDS)
    verdicts = {record["kernel"].rpartition(":")[2]: record["verdict"] for record in records}
    right = {name for name, verdict in verdicts.items() if verdict == "right"}
    assert right == {"reciprocal", "wide_reciprocal"}
    assert verdicts["reciprocal_except_on_the_clock"] == "wrong"
    assert "broken.py" in next(iter(verdicts))
    (group,), refused = board(records)
    assert len(refused) == 3
    assert group["op"] == "reciprocal"
    times = [row["seconds"] for row in group["rows"]]
    assert None not in times
    assert times == sorted(times)
    page = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert len(page["groups"][0]["rows"]) == 2
    text = (out / "leaderboard.html").read_text(encoding="utf-8")
    assert all(name in text for name in ("wide_reciprocal", "zero_reciprocal"))

    refused_again = command(folder, out)
    assert (refused_again.exit_code, "--resume" in refused_again.output) == (2, True)
    before = (out / RECORDS).read_bytes()
    assert command(folder, out, "--resume").exit_code == 1
    assert (out / RECORDS).read_bytes() == before
    assert "正确的实现" in write_leaderboard(out, "zh")[0].read_text(encoding="utf-8")


def test_a_stopped_folder_resumes(folder: Path, out: Path) -> None:
    records = map(json.loads, (out / RECORDS).read_text("utf-8").splitlines())
    missing, *judged = (record for record in records if record.get("seed") == SEED)
    (out / RECORDS).unlink()
    kept = [{"kernel": r["kernel"], "judgement": {**r, "seed": 77}} for r in judged]
    lines = "".join(json.dumps(line) + "\n" for line in kept)
    (out / "judgement-journal.jsonl").write_text(lines, encoding="utf-8")
    command(folder, out, "--resume")
    seeds = {record["kernel"]: record.get("seed") for record in read_records(out / RECORDS)}
    assert seeds.pop(missing["kernel"]) == SEED
    assert [seeds[line["kernel"]] for line in kept] == [77] * 3


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose kernels are judged, all of them right; that of odd.py ends the judge."""
    files: list[str] = []

    def judged(kernel: str, **settings: object) -> Judgement:
        files.append(Path(kernel.rpartition(":")[0]).name)
        ends = {"odd.py": RuntimeError("half a \ud800"), "stop.py": KeyboardInterrupt()}
        if files[-1] in ends:
            raise ends[files[-1]]
        return Judgement(kernel, "gelu", "forward", "float32", "right", 1, "quick")

    monkeypatch.setattr(folders, "judge", judged)
    return files


def kernel_in(folder: Path, name: str, answer: str = "x") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"def gelu(x):\n    return {answer}\n", encoding="utf-8")


def again(tmp_path: Path) -> list[Json]:
    return judge_all(tmp_path / "mine", tmp_path / "out", {}, resume=True)


def test_what_is_new_or_has_changed_is_judged_again(tmp_path: Path, asked: list[str]) -> None:
    for name in ("a.py", "b.py", "stop.py"):
        kernel_in(tmp_path / "mine", name)
    with pytest.raises(KeyboardInterrupt):
        judge_all(tmp_path / "mine", tmp_path / "out", {})
    (tmp_path / "mine" / "stop.py").unlink()
    kernel_in(tmp_path / "mine", "a.py", "0 * x")
    asked.clear()
    assert len(again(tmp_path)) == 2
    assert asked == ["a.py"]
    kernel_in(tmp_path / "mine", "c.py")
    kernel_in(tmp_path / "mine", "b.py", "0 * x")
    assert len(again(tmp_path)) == 3
    assert asked == ["a.py", "b.py", "c.py"]
    (tmp_path / "mine" / "a.py").unlink()
    assert len(again(tmp_path)) == len(again(tmp_path)) == 2
    assert asked == ["a.py", "b.py", "c.py"]


def test_a_kernel_that_breaks_the_judge_does_not_stop_the_folder(
    tmp_path: Path, asked: list[str]
) -> None:
    for name in ("odd.py", "right.py"):
        kernel_in(tmp_path / "mine", name)
    odd, right = judge_all(tmp_path / "mine", tmp_path / "out", {})
    assert (odd["verdict"], odd["op"]) == (NOT_JUDGED, "gelu")
    assert odd["why"] == "The judge failed on it (RuntimeError: half a \ufffd)."
    assert right["verdict"] == "right"


def test_a_file_whose_name_no_page_can_show_is_refused(tmp_path: Path) -> None:
    kernel_in(tmp_path, "a\x1b.py")
    named, (refusal,) = kernels_in(tmp_path)
    assert not named
    assert "rename it" in refusal["why"]
    refusal["kernel"] += "\ud800|b"
    _, (row,) = board([refusal])
    assert row["kernel"].endswith("\ufffd|b")


def test_a_bar_in_a_name_does_not_end_a_cell(tmp_path: Path, asked: list[str]) -> None:
    kernel_in(tmp_path / "mine", "a|b.py")
    judge_all(tmp_path / "mine", tmp_path / "out", {})
    _, page, _ = write_leaderboard(tmp_path / "out")
    assert "a\\|b.py:gelu`" in page.read_text(encoding="utf-8")


def test_what_has_no_kernel_and_a_folder_with_a_task_are_refused(tmp_path: Path) -> None:
    for words, said in (
        ([str(tmp_path)], "has no kernel"),
        (["nowhere"], "nowhere is not a kernel: write FILE.py:FUNCTION; nowhere is no folder"),
        ([".", "--task", "t.py"], "--task is for one candidate"),
    ):
        result = CliRunner().invoke(app, ["judge", *words])
        assert (result.exit_code, said in " ".join(result.output.split())) == (2, True)
