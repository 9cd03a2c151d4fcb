"""`testing.cases`: the cases of an op, as parameters of a kernel author's tests."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.op import core
from refkernels.testing import cases

TEST = """
import numpy as np
import pytest
from refkernels.testing import cases

def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True) * SHIFT)
    return e / e.sum(axis, keepdims=True)

@pytest.mark.parametrize("case", cases("softmax", directions=["forward"]))
def test_softmax(case):
    with np.errstate(all="ignore"):
        case.check(softmax(**case.inputs, **case.params))
"""


@pytest.mark.parametrize("op", ["softmax", "sgd", "cross_entropy", "matmul", "sin"])
@pytest.mark.parametrize("level", ["core", "full"])
def test_every_case_of_the_level_is_there_once_and_named(op: str, level: str) -> None:
    found = cases(op, ["float32", "float64"], level)
    names = [case.__name__ for case in found]
    known = registry.get(op)
    wanted = [
        f"{case.name} {dtype} {direction}"
        for dtype in ("float32", "float64")
        for case in (known.cases() if level == "full" else core(known.cases(), dtype))
        for direction in known.directions
        if dtype in case.dtypes and direction in case.directions
    ]
    assert names == wanted
    assert len(set(names)) == len(names) > 0


def test_a_plain_algorithm_passes_what_it_is_handed() -> None:
    tried = 0
    for case in cases("rms_norm"):
        plain = case.op.plain(case.direction, case.inputs, case.params, BINARY32)
        case.check({name: value.astype(np.float32) for name, value in plain.items()})
        tried += 1
    assert tried > 5


def test_arrays_are_read_only_and_the_same_each_time() -> None:
    first, second = cases("softmax")[0], cases("softmax")[0]
    assert str(first) == str(second)
    assert first.inputs["x"].tobytes() == second.inputs["x"].tobytes()
    with pytest.raises(ValueError, match="read-only"):
        first.inputs["x"][...] = 0
    assert first.params["axis"] == -1


def test_tests_have_the_cases_names_and_a_wrong_kernel_fails(tmp_path: Path) -> None:
    outcomes = {}
    for name, shift in (("right", "1"), ("unshifted", "0")):
        (tmp_path / f"test_{name}.py").write_text(TEST.replace("SHIFT", shift))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"test_{name}.py",
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        outcomes[name] = done
    assert outcomes["right"].returncode == 0, outcomes["right"].stdout
    assert outcomes["unshifted"].returncode == 1
    assert "test_softmax[softmax/offset[offset=10000" in outcomes["unshifted"].stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("softmaxx",), "did you mean 'softmax'"),
        (("softmax", "float99"), "not a floating-point format"),
        (("softmax", "tf32"), "no case in tf32"),
        (("softmax", "float32", "medium"), "choose one of core, full"),
        (("softmax", "float32", "core", "up"), "'forward' or 'backward'"),
        (("sgd", "float32", "core", "backward"), "has no case"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        cases(*arguments)
