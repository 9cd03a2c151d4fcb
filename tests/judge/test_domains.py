"""What a kernel declares that it takes: the formats of inputs that have several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hunting import one_in
from typer.testing import CliRunner

from refkernels import registry
from refkernels.cli.app import app
from refkernels.judging.cases import elements
from refkernels.judging.challenges import Drawer
from refkernels.judging.decoys import decisive_outputs
from refkernels.judging.examination import KernelExamination
from refkernels.judging.judge import judge
from refkernels.judging.questions import KernelDomain
from refkernels.judging.verdicts import FAMILIES_NEEDED
from refkernels.op import Direction, Op
from refkernels.reporting.judging.views import lines

INT8 = """
import numpy as np

def scaled_matmul(a, b, scale_a, scale_b, bias=None):
    if a.dtype != np.int8 or b.dtype != np.int8:
        raise NotImplementedError("int8 only")
    sums = a.astype(np.int32) @ b.astype(np.int32)
    c = sums * np.reshape(scale_a, (*np.shape(scale_a), 1)).astype(np.float64) * scale_b
    return (c if bias is None else c + bias).astype(scale_a.dtype)
"""
QUICK: dict[str, Any] = {"level": "quick", "seed": 3, "mutants": False, "causes": False}


def test_the_params_of_a_challenge_are_in_its_name() -> None:
    drawn = Drawer(registry.get("embedding"), "forward", "float32")._hard(0)
    named = {challenge.name.partition(": ")[2] for challenge in drawn}
    assert any(name.endswith("), padding_idx=-1") for name in named), named
    assert any("padding_idx" not in name for name in named)


@pytest.fixture
def int8(tmp_path: Path) -> str:
    (tmp_path / "int8.py").write_text(INT8, encoding="utf-8")
    return f"{tmp_path}/int8.py:scaled_matmul"


def test_a_kernel_of_one_integer_format_is_judged_in_it(int8: str) -> None:
    judgement = judge(int8, dtypes={"a": ["int8"], "b": ["int8"]}, **QUICK)
    assert judgement.right, judgement.reasons
    assert "a=int8, b=int8" in "".join(lines(judgement.to_dict(), ""))
    undeclared = judge(int8, **QUICK)
    assert undeclared.verdict == "not_enough_shown"


@pytest.mark.parametrize(
    ("dtypes", "refusal"),
    [
        (["--dtype", "a=int2"], "scaled_matmul has no case with a in int2: give other dtypes."),
        (["--dtype", "scale=int8"], "scaled_matmul has no input of integers or 8-bit numbers 'sc"),
        (["--dtype", "flot32"], "dtype is 'flot32': "),
    ],
)
def test_formats_that_nothing_has_are_refused(int8: str, dtypes: list[str], refusal: str) -> None:
    result = CliRunner().invoke(app, ["judge", int8, *dtypes])
    assert result.exit_code == 2
    assert refusal in result.output


NARROW = """
import numpy as np
def quantize(x, scale, zero_point=0):
    return np.clip(np.rint(x / scale) + zero_point, -128, 127).astype(np.int8)
def cast(x):
    import ml_dtypes
    return x.astype(ml_dtypes.float8_e5m2)
"""


@pytest.mark.parametrize(
    ("op", "dtype", "verdict"),
    [("quantize", "int8", "right"), ("cast", "float8_e5m2", "right"), ("cast", "int8", "wrong")],
)
def test_a_kernel_that_answers_in_one_narrow_format_is_asked_for_it(
    op: str, dtype: str, verdict: str, tmp_path: Path
) -> None:
    (tmp_path / "narrow.py").write_text(NARROW, encoding="utf-8")
    kernel = f"{tmp_path}/narrow.py:{op}"
    judgement = judge(kernel, dtype=dtype, level="quick", seed=3, mutants=False, causes=False)
    assert judgement.verdict == verdict
    assert judgement.lengths == {"to": (dtype,)}


@pytest.mark.parametrize("name", [name for name, op in registry.ops().items() if op.kinds])
def test_every_format_of_an_input_that_has_several_can_be_declared(name: str) -> None:
    op = registry.get(name)
    found = {
        (key, array.dtype.name)
        for case in op.cases()
        if "float32" in case.dtypes
        for key, array in case.build("float32")[0].items()
        if key in op.kinds and hasattr(array, "dtype")
    }
    for key, dtype in found:
        cases = Drawer(op, "forward", "float32", domain=KernelDomain(dtypes={key: [dtype]})).cases
        inputs = [cases.built(case)[0] for case in cases.all]
        assert inputs, (key, dtype)
        assert {array[key].dtype.name for array in inputs if key in array} <= {dtype}


WITH_PARAMS = [(op, way) for op in registry.ops().values() if op.params for way in op.directions]


def test_a_kernel_that_takes_the_op_s_own_params_alone_is_shown_enough() -> None:
    """Whatever the seed: where cases give the shapes, their other params are no kernel's duty."""
    asked = 0
    for op, direction in one_in(3, WITH_PARAMS):
        if not Drawer(op, direction, "float32").free:
            shown_enough(op, direction)
            asked += 1
    assert asked > 4


def shown_enough(op: Op, direction: Direction) -> None:
    for seed in range(4):
        examined = KernelExamination(
            op, direction, "float32", seed, KernelDomain(frozenset(op.optional))
        )
        families = set[str]()
        for challenge in examined.round(0):
            usual = dict(challenge.params) == dict(op.params) and challenge.family not in families
            if usual and elements(challenge.inputs) < 1 << 12 and challenge.has_answer:
                decisive = op.names(direction)[0] in decisive_outputs(challenge)
                families |= {challenge.family} if decisive else set()
            if enough := len(families) == FAMILIES_NEEDED:
                break
        assert enough, (op.name, direction, seed)
