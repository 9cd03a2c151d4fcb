"""`refkernels sweep`: its output and its status."""

import json
from functools import partial
from pathlib import Path

import planted_faults
import pytest
from command_helpers import said

refkernels_says = partial(said, "sweep")
fakes = planted_faults.fixture("one_ulp_off", "exception")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sine", "--framework", "numpy"], "There is no op 'sine': did you mean 'sin'?"),
        (["matmul", "--framework", "numpy"], "matmul is not a function of one number"),
        (["sin"], "There is nothing to sweep: name a --framework or a --kernel."),
        (["sin", "--framework", "nunpy"], "no framework is named 'nunpy'"),
        (["sin", "--framework", "numpy", "--dtype", "float8"], "There is no dtype 'float8'"),
        (["sin", "--framework", "numpy", "--range", "1"], "--range '1' is not A:B"),
        (["sin", "--framework", "numpy", "--set", "colour=red"], "no adapter has a flag named"),
        (["sin", "--framework", "numpy", "--set", "FOO"], "--set 'FOO' is not NAME=VALUE"),
    ],
)
def test_a_question_without_an_answer_is_one_sentence(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = refkernels_says(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith(f"refkernels: {said}")
    assert not (tmp_path / "out").exists()


def test_several_ops_frameworks_and_formats_in_one_call(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("sin", "cos", "--framework", "fake_one_ulp_off", "--framework", "fake_exception",
                 "--dtype", "float16", "--out", out, "--workers", "2")  # fmt: skip
    result = refkernels_says(*arguments)
    assert result.exit_code == 1, result.output
    assert "65,536" in result.stdout
    assert "planted: the first line" in " ".join(result.stdout.split())
    records = [json.loads(line) for line in (out / "sweeps.jsonl").read_text().splitlines()]
    sweeps = {(r["op"], r["framework"]): r for r in records if r["kind"] == "sweep"}
    assert len(sweeps) == 4
    assert sweeps["cos", "fake_one_ulp_off"]["counts"]["inputs"] == 65536
    assert sweeps["sin", "fake_exception"]["status"] == "incomplete"
    assert sweeps["cos", "fake_exception"]["status"] == "ok"
    page = (out / "sweep.html").read_bytes()
    assert said("report", out).exit_code == 0
    assert (out / "sweep.html").read_bytes() == page
    refused = refkernels_says(*arguments)
    assert refused.exit_code == 2
    assert "already holds a sweep: add --resume" in refused.stderr
    assert refkernels_says(*arguments, "--resume").exit_code == 1
    assert (out / "sweep.html").read_bytes() == page
