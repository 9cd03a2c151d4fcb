"""The BERT of the examples: certified as a formula, and the same in four frameworks."""

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flint
import numpy as np
import pytest
from hunting import HUNT
from presence import missing
from waiting import HANGS

from refkernels.alignment import align
from refkernels.contexts import Arb, RoundedArithmetic, objects
from refkernels.frameworks import environments

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")


def example(name: str) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))


@pytest.fixture(scope="module")
def bert() -> SimpleNamespace:
    return example("bert")


def test_the_first_loss_has_a_certificate(bert: SimpleNamespace) -> None:
    """5.981429278300, as float64 runs of three frameworks print it."""
    weights, batch = bert.load()
    with Arb(128) as arb:
        value = bert.loss(arb, {name: arb.array(array) for name, array in weights.items()}, batch)
        ball = objects.data(value).item()
    assert ball.rad() < flint.arb("1e-25")
    assert abs(float(ball.mid()) - 5.981429278300) < 1e-12
    xp = RoundedArithmetic("float64")
    plain = bert.loss(xp, {name: xp.array(array) for name, array in weights.items()}, batch)
    assert abs(float(xp.store(plain).data.item()) - float(ball.mid())) < 1e-12


def test_the_gradients_are_enclosed_and_one_is_zero(bert: SimpleNamespace) -> None:
    """Against those of the float64 reading; attention does not depend on its key's bias."""
    weights, batch = bert.load(rows=1)
    with Arb(128) as arb:
        parameters = {name: arb.array(array) for name, array in weights.items()}
        _, slopes = bert.gradients(arb, parameters, batch)
        enclosed = dict(zip(weights, (objects.data(slope) for slope in slopes), strict=True))
    xp = RoundedArithmetic("float64")
    _, plain = bert.gradients(xp, {name: xp.array(array) for name, array in weights.items()}, batch)
    near = dict(zip(weights, (xp.store(slope).data for slope in plain), strict=True))
    for name, balls in enclosed.items():
        middle = np.array([float(ball.mid()) for ball in balls.reshape(-1)]).reshape(balls.shape)
        assert max(float(ball.rad()) for ball in balls.reshape(-1)) < 1e-20
        scale = max(float(np.max(np.abs(middle))), 1e-6)
        assert np.max(np.abs(middle - near[name])) <= 1e-11 * scale
    for layer in ("l0", "l1"):
        assert all(ball.contains(0) for ball in enclosed[f"{layer}.k.b"].reshape(-1))
        assert not all(ball.contains(0) for ball in enclosed[f"{layer}.q.b"].reshape(-1))


@pytest.fixture(params=["float32", "float64"][:HUNT])
def runs(request: Any, trained: Callable[[str], Any]) -> dict[str, Path]:
    folders, dtype = {}, request.param
    for name in FRAMEWORKS:
        try:
            training = trained(name)
        except environments.NotInstalled as error:
            if name in environments.required():
                missing(name, error)
            continue
        (loss,) = training.losses[dtype]
        assert abs(loss - 5.981429278300078) < {"float32": 4e-6, "float64": 4e-10}[dtype]
        folders[name] = training.folders[dtype]
    if len(folders) < 2:
        pytest.skip("two frameworks are needed: `refkernels env create torch paddle`")
    return folders


@pytest.mark.usefixtures("judged_once")
def test_four_frameworks_train_one_definition(runs: dict[str, Path]) -> None:
    """With paddle's softmax clipped at -64, and mindspore's cross entropy 5 ulp off; in float64,
    asked for in a hunt, mindspore keeps a LayerNorm's statistics in float32."""
    first, *others = runs.values()
    for run in others:
        alignment = align(first, run, steps=[0])
        assert alignment.verdict.suspects == (), alignment.verdict.first
        assert not any(local.unjudged for local in alignment.local)
        assert alignment.matched is not None
        assert not alignment.matched.only_a + alignment.matched.only_b + alignment.matched.lone_a
        assert len(alignment.matched.parameters) == 46


def test_null_runs_have_the_learning_rates_of_the_training(
    bert: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that PyTorch's own schedulers gave: 30 steps of warm-up, then a decay to step 300."""
    kept = EXAMPLES.parent / "benchmarks" / "results" / "cpu-x86_64-linux" / "bert_curves.json"
    run = json.loads(kept.read_text())["runs"]["adam_schedule/torch"]
    assert run["options"].startswith("--steps 300 --warmup 30 ")
    monkeypatch.setitem(sys.modules, "bert", bert)
    rates = [example("null_runs").rate(step, 1e-3, 30, 300) for step in range(len(run["lr"]))]
    assert len(rates) == 40
    assert rates == pytest.approx(run["lr"], rel=1e-8)
    assert example("null_runs").rate(300, 1e-3, 30, 300) == 0.0
    assert example("null_runs").rate(7, 1e-3, 0, 300) == 1e-3


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("mindspore --optimizer adam --dtype float64", "Adam takes float16 and float32 only"),
        ("mindspore --optimizer lamb", "mindspore has no LAMB"),
        ("torch --warmup 5 --steps 5", "--total must be more than --warmup"),
    ],
)
def test_what_a_framework_lacks_is_refused(words: str, why: str, tmp_path: Path) -> None:
    framework, *options = words.split()
    command = [sys.executable, str(EXAMPLES / "train_bert.py"), framework, str(tmp_path / "run")]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_examples_say_how_they_are_used() -> None:
    for name in ("bert.py", "train_bert.py", "null_runs.py"):
        result = subprocess.run(
            [sys.executable, str(EXAMPLES / name), "--help"], capture_output=True, text=True,
            timeout=HANGS, check=True,
        )  # fmt: skip
        assert "usage" in result.stdout
