"""`refkernels warm`: compiles the kernels ahead of their first use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from refkernels.cli.shared.endings import refuse, refusing, stop
from refkernels.cli.shared.options import Ops

if TYPE_CHECKING:
    from refkernels.op import Case, Direction, Op

LARGEST = 1 << 16  # elements of an input: enough to need every kernel
_MOST_PROCESSES = 8  # more would compile the kernels that ops share at the same time


def warm(
    op: Ops = None,
) -> None:
    """Compile the kernels ahead, once for this version.

    Those that oracles, assertions and explanations need. Keeps them in the user's cache folder, or
    in $REFKERNELS_HOME if that is set.
    """
    from rich.console import Console
    from rich.progress import Progress

    from refkernels import registry
    from refkernels.arithmetic import jit, waiting

    with refusing():
        names = [registry.get(name).name for name in op or ()] or list(registry.ops())
    folder = jit.cache_folder(__name__)
    if folder is None:
        refuse(f"compiled kernels are not kept: {waiting.watch.unwritable}.")
    begin = time.perf_counter()
    compiled = 0
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=len(names))
        try:
            for name, number in _warm_all(names):
                compiled += number
                bar.update(task, advance=1, description=f"compiling ({name})")
        except KeyboardInterrupt:
            stop("Stopped; compiled kernels are kept.")
    typer.echo(
        f"{compiled} kernels compiled for {len(names)} ops in {time.perf_counter() - begin:.0f} s; "
        f"they are kept in {folder.parent}."
    )


def _warm_all(names: list[str]) -> Iterator[tuple[str, int]]:
    """Each op's name with the number of kernels compiled for it, in order of completion. This
    process warms the first op, so that those that warm the others find the shared kernels."""
    import multiprocessing

    from refkernels.runs.sweeps.pool import usable_cores

    yield names[0], use(names[0])
    if len(names) == 1:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(
        min(max(2, usable_cores()), _MOST_PROCESSES), initializer=_ignore_interrupts
    ) as pool:
        # One family's ops share kernels: a process that takes several in a row compiles them once.
        yield from pool.imap_unordered(_warm_one, names[1:], chunksize=1)


def _ignore_interrupts() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it


def _warm_one(name: str) -> tuple[str, int]:
    return name, use(name)


def use(name: str) -> int:
    """Use an op as a user does, in every dtype; return the number of kernels compiled."""
    from refkernels import registry
    from refkernels.arithmetic import small, waiting
    from refkernels.op import DIRECTIONS

    small.allowance.elements = 0  # here no NumPy fallback may replace a kernel
    waiting.watch.silence()
    before = waiting.watch.compiled
    op = registry.get(name)
    for direction in DIRECTIONS:
        regimes: set[str] = set()
        for case in op.cases():
            if case.regime not in regimes and direction in case.directions:
                regimes.add(case.regime)
                for dtype in case.dtypes:
                    _use_case(op, case, dtype, direction, first=len(regimes) == 1)
    return waiting.watch.compiled - before


def _use_case(op: Op, case: Case, dtype: str, direction: Direction, first: bool) -> None:
    from refkernels.arithmetic import formats
    from refkernels.diagnosis.explain import explain
    from refkernels.testing import assert_kernel

    arrays, params = case.build(dtype)
    inputs = {name: arrays[name] for name in op.takes(direction) if name in arrays}
    if max(array.size for array in inputs.values()) > LARGEST:
        return
    op.evaluate(direction, inputs, params)
    truth = op.evaluate(direction, inputs, params, ("rounding", dtype))
    if first:
        right = {name: exact.round(dtype)[0] for name, exact in truth.items()}
        assert_kernel(op, inputs, right, params, direction)
        plain = op.plain(direction, inputs, params, formats.get(dtype))
        explain(op.name, inputs, plain, params, direction)
