"""What a kernel declares that it takes: the formats of inputs that have several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hunting import one_in
from listing import SEED
from typer.testing import CliRunner

from refkernels import registry
from refkernels.cli.app import app
from refkernels.judging.challenges import Drawer
from refkernels.judging.examination import KernelExamination
from refkernels.judging.findings import FAMILIES_NEEDED
from refkernels.judging.judge import judge
from refkernels.judging.questions import KernelDomain, elements
from refkernels.judging.wrong_answers import decisive_outputs
from refkernels.reporting.judging.views import lines

ODD = Path(__file__).with_name("odd_kernels.py")
INT8 = f"{ODD}:int8_scaled_matmul"
QUICK: dict[str, Any] = {"level": "quick", "seed": SEED, "mutants": False, "causes": False}


def test_the_params_of_a_challenge_are_in_its_name() -> None:
    drawn = Drawer(registry.get("embedding"), "forward", "float32")._hard(0)
    named = {challenge.name.partition(": ")[2] for challenge in drawn}
    assert any(name.endswith("), padding_idx=-1") for name in named), named
    assert any("padding_idx" not in name for name in named)


def test_a_kernel_of_one_integer_format_is_judged_in_it(tmp_path: Path) -> None:
    judgement = judge(INT8, dtypes={"a": ["int8"], "b": ["int8"]}, **QUICK)
    assert judgement.right, judgement.reasons
    assert "a=int8, b=int8" in "".join(lines(judgement.to_dict(), ""))
    page = tmp_path / "undeclared.md"
    words = ["judge", INT8, "--level", "quick", "--seed", str(SEED), "--out", str(page)]
    assert CliRunner().invoke(app, words).stdout.endswith(f"\nWritten: {page}\n")
    assert "not enough shown" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("dtypes", "refusal"),
    [
        (["--dtype", "a=int2"], "scaled_matmul has no case with a in int2: give other dtypes."),
        (["--dtype", "scale=int8"], "scaled_matmul has no input of integers or 8-bit numbers 'sc"),
        (["--dtype", "flot32"], "dtype is 'flot32': "),
    ],
)
def test_formats_that_nothing_has_are_refused(dtypes: list[str], refusal: str) -> None:
    result = CliRunner().invoke(app, ["judge", INT8, *dtypes])
    assert result.exit_code == 2
    assert refusal in result.output


@pytest.mark.parametrize(
    ("op", "dtype", "verdict"),
    [("quantize", "int8", "right"), ("cast", "float8_e5m2", "right"), ("cast", "int8", "wrong")],
)
def test_a_kernel_that_answers_in_one_narrow_format_is_asked_for_it(
    op: str, dtype: str, verdict: str
) -> None:
    judgement = judge(f"{ODD}:{op}", dtype=dtype, **QUICK)
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
        assert cases, (key, dtype)
        assert {inputs[key].dtype.name for inputs, _ in cases if key in inputs} <= {dtype}


def test_a_kernel_that_takes_the_op_s_own_params_alone_is_shown_enough() -> None:
    """Whatever the seed: where cases give the shapes, their other params are no kernel's duty."""
    some, asked = [op for op in registry.ops().values() if op.params], 0
    for op, direction in one_in(3, [(o, way) for o in some for way in o.directions]):
        if Drawer(op, direction, "float32").free:
            continue
        asked += 1
        domain = KernelDomain(frozenset(op.optional))
        for seed in one_in(4, range(4)):
            families = set[str]()
            for challenge in KernelExamination(op, direction, "float32", seed, domain).round(0):
                usual = dict(challenge.params) == dict(op.params)
                usual &= challenge.family not in families
                if usual and elements(challenge.inputs) < 1 << 12 and challenge.has_answer:
                    decisive = op.names(direction)[0] in decisive_outputs(challenge)
                    families |= {challenge.family} if decisive else set()
                if enough := len(families) == FAMILIES_NEEDED:
                    break
            assert enough, (op.name, direction, seed)
    assert asked > 4
