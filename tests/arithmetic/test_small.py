"""NumPy fallbacks answer small arrays before a kernel is compiled, up to a limit a process."""

import subprocess
import sys

import numpy as np

from refkernels.arithmetic import formats, jit, small
from refkernels.arithmetic.blocks import each_block


def test_a_fallback_has_the_first_elements_of_a_process_and_the_kernel_the_rest() -> None:
    allowance = small.Allowance(4 * small.SMALL)
    covered = [allowance.covers(max, small.SMALL) for _ in range(6)]
    assert covered == [True] * 4 + [False] * 2
    assert allowance.covers(min, small.SMALL)  # another fallback has its own


def test_a_large_array_is_the_kernels_and_uses_nothing_up() -> None:
    allowance = small.Allowance(1 << 40)
    assert not allowance.covers(max, small.SMALL + 1)
    assert allowance.asked == 0


def test_calls_and_steps_cost_what_elements_cost() -> None:
    allowance = small.Allowance(1 << 20)
    calls = 0
    while allowance.covers(max, 1):
        calls += 1
        assert calls < 1 << 20
    assert calls == 1 << 10
    assert not allowance.covers(min, 1, steps=1 << 16)


def test_a_kernel_that_an_earlier_process_has_compiled_takes_over_sooner() -> None:
    values = np.ones(3)
    formats._round_array(values, 24, -126, 127)
    read_anew = jit.njit(formats._round_array.py_func)
    assert not read_anew.signatures
    assert read_anew.is_kept
    calls = []
    for kernel in (None, read_anew):
        allowance = small.Allowance(1 << 20)
        calls.append(sum(allowance.covers(max, 1, kernel=kernel) for _ in range(1 << 11)))
    assert calls == [1 << 10, 1 << 2]


def test_the_first_kernel_of_a_process_is_as_dear_to_read_as_to_compile() -> None:
    formats._round_array(np.ones(3), 24, -126, 127)  # keeps it
    program = """
from refkernels.arithmetic import formats, small
kernel = formats._round_array
assert kernel.is_kept
print(sum(small.allowance.covers(max, 1, kernel=kernel) for _ in range(1 << 14)))
kernel.dispatcher
print(small.Allowance(1 << 20).covers(min, 1 << 12, kernel=kernel))
print(small.Allowance(1 << 20).covers(min, (1 << 12) + 1, kernel=kernel))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"8192", b"True", b"False"]


def test_a_kernel_that_was_never_compiled_is_not_on_disk() -> None:
    @jit.njit
    def new(x):
        return x

    assert not new.is_kept


def test_a_block_is_the_fallbacks_or_the_kernels(monkeypatch) -> None:
    taken = []
    for elements in (0, 1 << 20):
        monkeypatch.setattr(small, "allowance", small.Allowance(elements))
        each_block(
            lambda first, last, out: out.append("kernel"),
            3,
            taken,
            fallback=lambda out: out.append("fallback"),
        )
    assert taken == ["kernel", "fallback"]
