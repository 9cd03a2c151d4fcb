"""Trainings of examples/train_bert.py that tests of several files use."""

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hunting import HUNT

from refkernels.frameworks import environments

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
PLAIN = "--steps 2 --captured"
ONE = "--steps 1 --captured 0 --only [!l]*,*attention*"  # what else l0 and l1 have, mlm has too
ADAMW = "--steps 2 --captured 0 --only masked --optimizer adamw --warmup 1 --total 3"
CLIPPED = " --lr 1e-1 --clip 1"
ALONE = {"float32": ONE} | ({"float64": f"{ONE} --dtype float64"} if HUNT > 1 else {})
TRAININGS: dict[str, dict[str, str]] = {
    "torch": {
        **ALONE,
        "whole": f"{PLAIN} --rows 32 --dtype float64",
        "by_micro": f"{PLAIN} --rows 32 --dtype float64 --micro 8",
        "by_tokens": f"{PLAIN} --rows 32 --dtype float64 --micro 8 --mean-over tokens",
        "adamw": ADAMW,
        "by_hand": f"{ADAMW} --planted nothing",
        "loss_without_eps": f"{ADAMW} --planted loss_without_eps",
    },
    "paddle": ALONE,
    "oneflow": {**ALONE, "eager": PLAIN + CLIPPED, "graph": f"{PLAIN}{CLIPPED} --graph"},
    "mindspore": ALONE,
}


class Trained(NamedTuple):
    """By the name of a training: its losses, and the folder that it was captured in."""

    losses: dict[str, list[Any]]
    folders: dict[str, Path]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """trained(framework): its TRAININGS, one after the other in one process, as an import takes
    seconds. Raises environments.NotInstalled."""

    @functools.cache
    def get(framework: str) -> Trained:
        folder, options = tmp_path_factory.mktemp(f"bert_{framework}"), TRAININGS[framework]
        command = [environments.find(framework).python, str(HERE / "several_trainings.py")]
        done = subprocess.run(
            [*command, str(EXAMPLES), framework, str(folder), *options.values()],
            capture_output=True, text=True, timeout=900, check=False, cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        curves = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        folders = {name: folder / str(number) for number, name in enumerate(options)}
        return Trained(dict(zip(options, curves, strict=True)), folders)

    return get
