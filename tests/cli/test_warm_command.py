"""`refkernels warm` compiles kernels, so that no later command waits for them."""

import os
import subprocess
import sys
from pathlib import Path

from command_helpers import refused, said

from refkernels.arithmetic import jit
from refkernels.cli import warm

PROGRAM = """
import gc
import numpy as np
import refkernels
from refkernels.arithmetic.jit import Kernel
from refkernels.cli.warm import use
from refkernels.testing import assert_kernel

def at_hand():
    kernels = [one for one in gc.get_objects() if isinstance(one, Kernel)]
    return {(one.__module__, one.__name__, types) for one in kernels for types in one.signatures}

use("sqrt")
warmed = at_hand()
assert len(warmed) > 10, warmed
x = np.linspace(0.5, 2.0, 1000, dtype=np.float32)
y = np.sqrt(x)
assert_kernel("sqrt", {"x": x}, {"y": y})
refkernels.explain("sqrt", {"x": x}, {"y": y})
print(at_hand() - warmed)
"""


def test_what_an_assertion_and_an_explanation_need_is_compiled_ahead() -> None:
    """Compiled, or read from disk: by then they need no kernel that is not at hand."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


def test_the_number_of_kernels_and_their_folder_are_printed(monkeypatch) -> None:
    monkeypatch.setattr(warm, "use", len)
    result = said("warm", "--op", "sqrt")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("4 kernels compiled for 1 ops in 0 s; ")
    assert str(jit._root()) in result.stdout


def test_an_unknown_op_and_a_cache_that_cannot_be_written_are_refused():
    assert "There is no op 'sine'" in refused(said("warm", "--op", "sine"))
    python = [sys.executable, "-m", "refkernels", "warm", "--op", "sqrt"]
    nowhere = {**os.environ, "NUMBA_CACHE_DIR": str(Path(os.devnull) / "below")}
    done = subprocess.run(python, env=nowhere, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("refkernels: compiled kernels are not kept: ")
