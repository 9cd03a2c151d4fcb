"""Arguments of functions that run frameworks, refused in a sentence where they do not fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refkernels import arguments
from refkernels.runs import measurement, sweeps

REFUSED: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: arguments.as_names("sin", "ops"), "ops is of type str, but it must be a list"),
    (lambda: arguments.as_names(["sin", 1], "ops"), "ops holds a int"),
    (lambda: arguments.as_mapping([("a", 1)], "params"), "params must map names to values"),
    (lambda: arguments.as_mapping({1: 2}, "params"), "params has a int among its keys"),
    (lambda: arguments.as_settings({"A": 1}), "settings must map strings to strings"),
    (lambda: arguments.as_path(3, "directory"), "directory is of type int"),
    (lambda: arguments.as_seconds(0.0, "timeout"), "timeout must be a number of seconds"),
    (lambda: arguments.as_seconds("1", "timeout"), "timeout is of type str"),
    (lambda: arguments.as_flag(1, "resume"), "resume is of type int, not True or False"),
    (lambda: arguments.as_function("f", "progress"), "progress is of type str"),
    (lambda: measurement.measure("sin", Path("out")), "plan is of type str: `select` makes one"),
    (lambda: sweeps.sweep("sin", Path("out")), "plan is of type str: `plan` makes one"),
)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_arguments_that_do_not_fit_are_refused_in_a_sentence_that_names_them(case: int) -> None:
    call, sentence = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()
