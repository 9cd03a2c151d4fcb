"""`refkernels sweep`: tries every input of a format; its options and its progress."""

from __future__ import annotations

import threading
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion, options, pages
from refkernels.cli.shared.endings import refuse, refusing, resumable
from refkernels.cli.shared.kernels import Abi, Interpreter, Kernels, asked_targets
from refkernels.cli.shared.progress import shown
from refkernels.cli.shared.wording import argument, option


def sweep(
    op: Annotated[list[str], argument("sweep.op", autocompletion=completion.ops)],
    framework: options.Frameworks = None,
    kernel: Kernels = None,
    abi: Abi = None,
    python: Interpreter = None,
    dtype: Annotated[
        list[str] | None, option("sweep.dtype", autocompletion=completion.dtypes)
    ] = None,
    device: Annotated[str, option("sweep.device")] = "cpu",
    range: Annotated[str | None, option("sweep.range")] = None,
    out: Annotated[Path, option("sweep.out")] = Path("sweep"),
    resume: options.Resume = False,
    workers: Annotated[int | None, option("sweep.workers", min=1, max=options.MOST_WORKERS)] = None,
    scheduler: Annotated[str | None, option("sweep.scheduler")] = None,
    settings: options.Settings = None,
    tries: Annotated[int, option("sweep.tries", min=1, max=options.MOST_TRIES)] = 1 << 21,
    seed: Annotated[int, option("sweep.seed", min=0, max=options.MOST_SEED)] = 0,
    timeout: options.Timeout = 120.0,
) -> None:
    """Try every input of a format: all 2^32 of float32.

    Oracles judge every answer. Formats of up to 32 bits are swept: all bit patterns, or those of
    --range. float64 and functions of two inputs (pow, atan2, hypot, swiglu) are searched, which
    gives lower bounds. Ends with status 1 if a framework failed, 2 if the question cannot be
    answered, 130 if it was stopped; then add --resume.
    """
    from refkernels.runs import sweeps

    setting_values = options.parse_settings(settings)
    names, _ = asked_targets(framework, kernel, op, abi, python)
    if not names:
        refuse("There is nothing to sweep: name a --framework or a --kernel.")
    pool = None
    try:
        with refusing(out, also=(sweeps.PoolError,)), resumable(out):
            if scheduler is None:
                pool = sweeps.Processes(workers)  # its imports run while the plan is made
            with refusing():
                plan = sweeps.plan(
                    op, names, dtype or ("float32",), range=range, device=device,
                    settings=setting_values, tries=tries, seed=seed, timeout=timeout,
                )  # fmt: skip
            if pool is not None:
                from refkernels.runs.sweeps.run import most_at_once

                pool.limit(most_at_once(plan))
                _start(pool, names[0], setting_values, timeout)
            # The drawing code is imported while the workers start.
            drawing = threading.Thread(
                target=import_module, args=("refkernels.reporting",), daemon=True
            )
            drawing.start()
            records = _run(plan, out, resume, pool or sweeps.Dask(str(scheduler)))
    finally:
        if pool is not None:
            pool.close(at_once=True)  # if no sweep has done so
    pages.show_swept(out)
    final = (None, "ok", "unsupported")
    if any(record.get("status") not in final for record in records):
        raise typer.Exit(1)


def _start(pool: Any, framework: str, settings: dict[str, str], timeout: float) -> None:
    """Start the first framework of the sweep in every worker."""
    from refkernels.frameworks import catalog
    from refkernels.runs.sweeps import kept
    from refkernels.runs.sweeps.question import ONE_THREAD, SweepQuestion
    from refkernels.target_names import merged

    spec, name = catalog.target(framework)
    flags = merged({**ONE_THREAD, **settings}, name)
    question = SweepQuestion("", spec, "", "", flags, timeout=timeout)
    pool.prepare(kept.prepare, question)


def _run(plan: Any, out: Path, resume: bool, pool: Any) -> list[dict[str, Any]]:
    from refkernels.runs import sweeps

    with shown("sweeping", millions=True) as (show, _):
        return sweeps.sweep(
            plan,
            out,
            resume=resume,
            pool=pool,
            progress=lambda now: show(now.done, now.total, now.unit),
        )
