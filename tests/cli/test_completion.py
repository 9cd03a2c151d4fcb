"""The shell's completions, requested as bash requests them."""

import os
import subprocess
import sys

import pytest

from refkernels import registry
from refkernels.cli.shared import completion
from refkernels.frameworks import catalog
from refkernels.op import DTYPES
from refkernels.records.words import LEVELS


def completed(*words: str) -> list[str]:
    """What bash is offered for the last word."""
    environ = {"_REFKERNELS_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words))}
    environ["COMP_WORDS"] = " ".join(["refkernels", *words])
    code = "import sys; sys.argv[0] = 'refkernels'; from refkernels.__main__ import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environ}, capture_output=True, text=True
    )
    assert ran.stderr == ""
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("explain", "sig"), ["sigmoid"]),
        (("measure", "--op", "layer"), ["layernorm"]),
        (("sweep", "sin", "cosh", "--framework", "tor"), ["torch"]),
        (("reveal", "sum", "--dtype", "bf"), ["bfloat16"]),
        (("explain", "sin", "--fail-on", "ex"), ["exceeds_bound"]),
        (("measure", "--case", "matmul/k_sweep[K=385"), ["matmul/k_sweep[K=385,seed=0]"]),
        (("env", "remove", "mind"), ["mindspore"]),
        (("meas",), ["measure"]),
    ],
)
def test_bash_is_offered_the_names_with_that_beginning(
    words: tuple[str, ...], offered: list[str]
) -> None:
    assert completed(*words) == offered


def test_all_names_are_offered() -> None:
    assert sorted(completion.ops("")) == sorted(registry.ops())
    assert completion.frameworks("") == catalog.names()
    assert completion.dtypes("") == list(DTYPES)
    assert completion.levels("") == list(LEVELS[:-1])
    assert sorted(completion.cases("")) == sorted(f"{name}/" for name in registry.ops())
    listed = [case for op in registry.ops() for case in completion.cases(f"{op}/")]
    assert listed == [case.name for op in registry.ops().values() for case in op.cases()]
    assert completion.cases("nothing/") == []


def test_an_installed_version_is_offered() -> None:
    import numpy as np

    assert f"numpy=={np.__version__}" in completion.frameworks("numpy==")
