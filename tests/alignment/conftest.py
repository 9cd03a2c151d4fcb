"""Runs that tests of several files use, trained once."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from captured import run_script

SCRIPTS = "tiny_training.py optimizer_words.py quiet_training.py"
COMPILED = {"paddle": " graph_training.py", "oneflow": " graph_training.py"}
OPTIMIZERS = ("sgd", "adamw")  # of the tiny training, without the probe and with it
STEPS = 4
MOVED = tuple((name, '{"perturb": 7, "trains": 1}') for name in ("moved", "again"))
PORTS = (  # of torch's: a perturbed weight that is square; a mistake
    ("square", '{"perturb": 3, "trains": 1}'), ("bare", '{"trains": 1, "bare": true}'),
)  # fmt: skip


class SmallRuns(NamedTuple):
    """The folder of a framework's runs, what each script printed, and the probe's log."""

    folder: Path
    printed: dict[str, Any]
    log: str


@pytest.fixture(scope="session")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], SmallRuns]:
    """small_runs(framework): the runs of its small trainings, all of one process, as an import
    takes seconds. Those without the probe come first: it is not loaded yet."""

    @functools.cache
    def get(framework: str) -> SmallRuns:
        folder = tmp_path_factory.mktemp(f"small_{framework}")
        scripts = SCRIPTS + COMPILED.get(framework, "")
        probed = [f"{name}:{name}" for name in OPTIMIZERS]
        options = (*MOVED, *PORTS[framework != "paddle" :])
        probed += [f"sgd:{name}:{given}" for name, given in options]
        ran = run_script(framework, folder, scripts, framework, str(STEPS), *OPTIMIZERS, *probed)
        assert ran.returncode == 0, ran.stderr[-3000:]
        names = scripts.split()
        lines = ran.stdout.strip().splitlines()[-len(names) :]
        return SmallRuns(folder, dict(zip(names, map(json.loads, lines), strict=True)), ran.stderr)

    return get
