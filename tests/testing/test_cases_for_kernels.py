"""`testing.cases`: the cases of an op, as parameters of a kernel author's tests."""

from pathlib import Path

import numpy as np
import pytest
from plugin_runs import run_pytest

from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.judging.challenges import Drawer
from refkernels.op import core
from refkernels.testing import cases

TEST = """
import numpy as np
import pytest
from refkernels.testing import cases, cause

cause.SECONDS = 0.0  # as in these tests

def softmax(x, axis, shift):
    e = np.exp(x - x.max(axis, keepdims=True) * shift)
    return e / e.sum(axis, keepdims=True)

each = pytest.mark.parametrize("case", cases("softmax", directions=["forward"]))

@each
def test_right(case):
    case.check(softmax(**case.inputs, **case.params, shift=1))

@each
@pytest.mark.filterwarnings("ignore")
def test_unshifted(case):
    case.check(softmax(**case.inputs, **case.params, shift=0))
"""


@pytest.mark.parametrize("op", ["softmax", "sgd", "cross_entropy", "matmul", "sin"])
@pytest.mark.parametrize("level", ["core", "full"])
def test_every_case_of_the_level_is_there_once_and_named(op: str, level: str) -> None:
    listed = cases(op, ["float32", "float64"], level)
    names = [case.__name__ for case in listed]
    record = registry.get(op)
    wanted = [
        f"{case.name} {dtype} {direction}"
        for dtype in ("float32", "float64")
        for case in (record.cases() if level == "full" else core(record.cases(), dtype))
        for direction in record.directions
        if dtype in case.dtypes and direction in case.directions
    ]
    by_rule = [name for name in names if name.split("[")[0].endswith(("/negative", "/wide"))]
    assert [name for name in names if name not in by_rule] == wanted
    assert len(set(names)) == len(names) > len(by_rule) > 0


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
    printed = run_pytest(tmp_path, TEST, "-rfE")
    failed = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert any("test_unshifted[softmax/offset[offset=10000" in line for line in failed), printed
    assert all("test_unshifted" in line for line in failed), printed
    assert len(failed) < len(cases("softmax", directions=["forward"])), printed


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


@pytest.mark.parametrize("op", registry.ops())
def test_every_op_is_asked_for_more_than_16_bits_count_and_for_scores_below_0(op: str) -> None:
    record = registry.get(op)
    drawer = Drawer(record, "forward", "float32")
    listed = cases(op, "float32", "core", ["forward"])
    longest = 0
    for case in listed:
        for value in case.inputs.values():
            arrays = value if isinstance(value, list) else [value]
            longest = max(longest, *(max(array.shape, default=1) for array in arrays))
    assert longest > 2**15
    first = drawer.roles.first
    if first is None or first in drawer.roles.positive or record.kinds.get(first) == "low":
        return
    low = [case.inputs for case in listed if case.case.regime == "negative"]
    assert low
    assert all(np.all(inputs[first] < -1000.0) for inputs in low)
