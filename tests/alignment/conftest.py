"""Runs that tests of several files use, trained once."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from captured import answer, run_script


@pytest.fixture(scope="session")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """small_runs(framework): the folder with the runs of optimizer_words.py and quiet_training.py,
    and the names of the former."""

    @functools.cache
    def get(framework: str) -> tuple[Path, list[str]]:
        folder = tmp_path_factory.mktemp(f"small_{framework}")
        ran = run_script(framework, folder, "optimizer_words.py quiet_training.py", framework)
        assert answer(ran) == {}
        return folder, json.loads(ran.stdout.splitlines()[-2])

    return get
