"""Printed learning rates: public threads, the schedule of each run, and where two runs part."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from refkernels.alignment.rates import compared, read_rates
from refkernels.cli.app import app

UNIRL = "[3e-4, 2.927e-4, 2.714e-4, 2.382e-4, 1.964e-4, 1.5e-4, 1.036e-4, 6.183e-5, 2.865e-5]"
LIBAI = "0.005\n1.004\n2.003\n3.002\n4.001\n4.001\n4.001\n4.001\n"
LOG = "".join(
    f"step {k}: loss 2.3, lr {k * 3e-6 if k < 100 else rate:.5e}\n"
    for k in range(0, 2001, 10)
    for rate in [3e-5 + 2.7e-4 * math.cos(math.pi * (k - 100) / 3800) ** 2]
)
BERT = "".join(f"{5e-6 * k if k < 10 else 5e-5 * (1 - k / 100)!r}\n" for k in range(100))
STAIRS = "".join(f"{0.1 * 0.1 ** (k // 30):.4e}\n" for k in range(99))
FITS: dict[str, tuple[str, str, dict[str, float]]] = {  # intervals hold these parameters
    UNIRL: ("cosine", "as_asked", {"max_lr": 3e-4, "min_lr": 0.0, "decay_steps": 10}),
    LIBAI: ("constant", "as_asked", {"max_lr": 4.001, "warmup_steps": 4}),
    LOG: ("cosine", "as_asked", {"min_lr": 3e-5, "warmup_steps": 100, "decay_steps": 1900}),
    BERT: ("linear", "decay_from_start", {"max_lr": 5e-5, "warmup_steps": 10, "decay_steps": 100}),
    STAIRS: ("step", "as_asked", {"max_lr": 0.1, "decay_steps": 30}),
    "".join(f"{0.1 * 0.95**k:.5g}\n" for k in range(60)): ("exponential", "as_asked", {}),
    "1e-3\n5e-4\n": ("none: one other rate shows no shape", "", {}),
    "1e-3\n5e-4\n7e-4\n2e-4\n9e-4\n": ("none", "", {}),
}


@pytest.mark.parametrize("text", FITS, ids=lambda text: FITS[text][0])
def test_the_schedule_of_printed_rates_is_named_with_intervals(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    run: dict[str, Any] = compared(read_rates(tmp_path / "a.txt"))["runs"][0]
    decay, convention, parameters = FITS[text]
    assert (run or {"convention": ""})["convention"] == convention
    assert not run or run["schedule"]["decay"] == decay
    for name, value in parameters.items():
        low, high = run["intervals"][name]
        assert low <= value <= high < value * 1.001 + 1e-7


def test_the_first_step_at_which_two_runs_part(tmp_path: Path) -> None:
    for name, ending in (("a", "4.001"), ("b", "5")):
        (tmp_path / name).write_text(
            LIBAI.replace("001\n4.001\n4.001\n4.001", "001" + f"\n{ending}" * 3)
        )
    words = ["align", "--rates", str(tmp_path / "a"), str(tmp_path / "b")]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 1
    assert "part at step 5: 4.001 in A and 5 in B" in said.stdout
    assert "| B | constant | `max_lr` 5 (4.9995 – 5.0005)" in said.stdout
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["parted"]["step"] == 5
    same = CliRunner().invoke(app, [*words[:3], words[2]])
    assert (same.exit_code, "agree in all of the 8 steps" in same.stdout) == (0, True)
    for text, reason in (
        ("hello", "has no"),
        ("1 2 3", "line 1 has 3"),
        ("5 1\n4 1", "step 4 follows"),
    ):
        (tmp_path / "a").write_text(text)
        refused = CliRunner().invoke(app, words)
        assert (refused.exit_code, reason in refused.stderr) == (2, True)
