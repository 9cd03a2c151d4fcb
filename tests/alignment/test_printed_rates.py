"""Printed learning rates: public threads, the schedule of each run, and where two runs part."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from refkernels.alignment.rates import compared, intervals, read_rates
from refkernels.alignment.shifts import moved
from refkernels.cli.app import app
from refkernels.reporting.alignment import page

UNIRL = "[3e-4, 2.927e-4, 2.714e-4, 2.382e-4, 1.964e-4, 1.5e-4, 1.036e-4, 6.183e-5, 2.865e-5]"
LIBAI = "0.005\n1.004\n2.003\n3.002\n4.001\n4.001\n4.001\n4.001\n"


def fall(part: float) -> float:
    return math.cos(math.pi / 2 * part) ** 2


def nano(k: int) -> float:
    """Warm-up to the peak, which is printed twice, and a cosine with a floor."""
    return 3e-4 * (k + 1) / 20 if k < 20 else 3e-5 + 2.7e-4 * fall((k - 20) / 80)


def printed(rate: Callable[[int], float], count: int, form: str = "{:.4e}\n") -> str:
    return "".join(form.format(rate(k)) for k in range(count))


def cycle(rates: list[float], steps: list[float], curved: bool, height: float = 0.0) -> str:
    """From one rate to the next, as PyTorch's OneCycleLR; with a `height` again and again, as high
    against the last time, as CyclicLR."""
    ends = np.cumsum([0, *steps])
    turn, u = np.divmod(np.arange(60), ends[-1] if height else 60)
    place = np.interp(u, ends, range(len(ends)))
    place += curved * (np.sin(np.pi / 2 * (place % 1)) ** 2 - place % 1)
    risen = (height or 1.0) ** turn * (np.interp(place, range(len(ends)), rates) - rates[0])
    return printed((rates[0] + risen).__getitem__, 60)


ONE, THREE, UP = [1.2e-4, 1.2e-3, 1.2e-6], [4e-4, 1e-2, 4e-4, 4e-8], [1e-4, 1e-3, 1e-4]
LOG = "".join(f"step {k}: loss 2.3, lr {nano(k):.5e}\n" for k in range(0, 95, 5))
BERT = printed(lambda k: 5e-6 * k if k < 10 else 5e-5 * (1 - k / 100), 100, "{!r}\n")
INVERSE = printed(lambda k: 1e-3 * min(k / 40, (40 / max(k, 1)) ** 0.5), 200)
POWER = printed(lambda k: 1e-2 * (1 - k / 80) ** 0.9, 60, "lr: [{}]\n")
STAGES = printed(lambda k: 0.1 * 0.2 ** ((k >= 30) + (k >= 80) + (k >= 90)), 120)
SGDR = printed(lambda k: 1e-3 * fall(k / 20 if k < 20 else k / 40 - 0.5), 60)
EQUAL = printed(lambda k: 2e-4 * (k / 10 if k < 10 else fall((k - 10) / 30 % 1)), 100)
EASED = printed(lambda k: 1e-3 * min(1 - fall(min(k, 20) / 20), 1.5 - k / 40), 50)
HELD = printed(lambda k: min(k / 5, 1.0, 2.0 - k / 50), 90)
FITS: dict[str, tuple[str, str, dict[str, Any]]] = {  # the parameters, which intervals hold
    UNIRL: ("cosine", "as_asked", {"max_lr": 3e-4, "min_lr": 0.0, "decay_steps": 10}),
    LIBAI: ("constant", "as_asked", {"max_lr": 4.001, "warmup_steps": 4}),
    LOG: ("cosine", "warmup_from_first_step", {"warmup_steps": 20, "decay_steps": 80}),
    BERT: ("linear", "decay_from_start", {"max_lr": 5e-5, "warmup_steps": 10, "decay_steps": 100}),
    printed(lambda k: 0.1 ** (1 + k // 30), 99): ("step", "as_asked", {"decay_steps": 30}),
    printed(lambda k: 0.1 * 0.95**k, 60): ("exponential", "as_asked", {}),
    printed(nano, 70): ("cosine", "warmup_from_first_step", {"min_lr": 3e-5, "decay_steps": 80}),
    INVERSE: ("inverse_sqrt", "as_asked", {"warmup_steps": 40, "decay_steps": 40}),
    POWER: ("polynomial", "as_asked", {"decay_steps": 80}),
    EASED: ("linear", "as_asked", {"warmup_steps": 20, "cosine_warmup": True, "decay_steps": 40}),
    HELD: ("linear", "as_asked", {"warmup_steps": 5, "hold_steps": 45, "decay_steps": 50}),
    STAGES: ("step", "as_asked", {"max_lr": 0.1, "milestones": (30, 80, 90)}),
    SGDR: ("cosine", "as_asked", {"decay_steps": 20, "restarts": 2}),
    EQUAL: ("cosine", "as_asked", {"warmup_steps": 10, "decay_steps": 30, "restarts": 1}),
    cycle(ONE, [29, 70], True): ("one_cycle", "by_cosines", {"max_lr": 1.2e-3, "fall_steps": 70}),
    cycle(ONE, [43 / 3, 131 / 3], True): ("one_cycle", "by_cosines", {"rise_steps": 43 / 3}),
    cycle(THREE, [9.1, 9.1, 16.8], True): ("one_cycle_three_phase", "by_cosines", {}),
    cycle(UP, [7.5, 4], False, 1.0): ("cyclic", "by_lines", {"rise_steps": 7.5, "fall_steps": 4}),
    cycle(UP, [7.5, 4], False, 0.5): ("cyclic_halved", "by_lines", {"max_lr": 1e-3}),
    cycle(UP, [7.5, 4], False, 0.7): ("none: no framework's cycle", "", {}),
    printed(lambda k: 1e-3 if k else 7.5e-4, 4): ("constant", "as_asked", {"warmup_steps": 1}),
    "1e-3\n5e-4\n": ("none: one other rate shows no shape", "", {}),
    "1e-3\n5e-4\n7e-4\n2e-4\n9e-4\n": ("none", "", {}),
}


def test_of_few_digits_the_other_decays_that_fit_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1e-3\n9e-4\n8e-4\n7e-4\n")
    said = CliRunner().invoke(app, ["align", "--rates", str(tmp_path / "a.txt")]).stdout
    assert "linear decay, cosine decay, inverse square root decay as well" in said


@pytest.mark.parametrize("text", FITS, ids=lambda text: FITS[text][0])
def test_the_schedule_of_printed_rates_is_named_with_intervals(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    run: dict[str, Any] = compared(read_rates(tmp_path / "a.txt"))["runs"][0]
    decay, convention, parameters = FITS[text]
    assert (run or {"convention": ""})["convention"] == convention
    assert not run or (run["schedule"]["decay"], run["also"]) == (decay, [])
    for name, value in parameters.items():
        low, high = run["intervals"].get(name, (run["schedule"].get(name),) * 2)
        assert low <= value <= high
        assert isinstance(value, tuple) or high < value * 1.001 + 1e-7


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (lambda k: nano(k - 1) if k else 0.0, ": B is one step late."),
        (lambda k: nano(2 * k), "B has at each step t what A has at step 2 t."),
        (lambda k: nano(2 * k + 1), "B has at each step t what A has at step 2 t + 1."),
        (lambda k: nano(k // 3), "A has at each step t what B has at step 3 t."),
        (lambda k: nano(k) if k < 30 else 1e-4, "in B.**"),
    ],
)
def test_which_steps_go_together(its: Callable[[int], float], said: str, tmp_path: Path) -> None:
    for name, rate in (("a", nano), ("b", its)):
        (tmp_path / name).write_text(printed(rate, 70))
    words = ["align", "--rates", str(tmp_path / "a"), str(tmp_path / "b")]
    assert said in CliRunner().invoke(app, words).stdout.split("\n")[0]


def test_the_first_step_at_which_two_runs_part(tmp_path: Path) -> None:
    for name, ending in (("a", "4.001"), ("b", "5")):
        rates = LIBAI.replace("001\n4.001\n4.001\n4.001", "001" + f"\n{ending}" * 3)
        (tmp_path / name).write_text(rates)
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
        ("lr=[1, 2]", "line 1 has 2 rates"),
        ("1e-3 1e-4", "line 1 has 2 numbers"),
        ("1e-3\nnan\n1e-3", "not finite"),
        ("step 0: loss 1, lr: NaN", "not finite"),
        ("[1e-3, Infinity]", "not finite"),
    ):
        (tmp_path / "a").write_text(text)
        refused = CliRunner().invoke(app, words)
        assert (refused.exit_code, reason in refused.stderr) == (2, True)


def test_two_schedules_are_told_and_a_run_that_repeats_itself_is_seen() -> None:
    stairs = (intervals({k: 0.1 ** (k // n) for k in range(9)}) for n in (3, 2))
    details = {"schedules": compared(*stairs)["runs"]}
    found = {"kind": "rate", "step": 2, "where": "0", "a": "1", "b": "0.1", "details": details}
    said = page.difference(found, page.words_of("en"))
    for run, steps in (("A", 3), ("B", 2)):
        assert f"{run} follows: decay in steps (`max_lr` 1; `decay_steps` {steps}" in said
    assert moved(*[dict(enumerate("abcabc"))] * 2, str.__eq__, 2)["at"] == "1 t - 3"
