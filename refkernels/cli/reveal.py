"""`refkernels reveal`: the order in which a framework adds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion, options
from refkernels.cli.shared.endings import refuse, refusing
from refkernels.cli.shared.kernels import Abi, Interpreter, asked_targets
from refkernels.cli.shared.progress import progress_bar
from refkernels.cli.shared.wording import argument, option
from refkernels.records.files import write_whole
from refkernels.records.words import SCHEMA

_LEAVES = 2**14  # terms of a sum: a sequential sum takes as many questions


def reveal(
    op: Annotated[str, argument("reveal.op")],
    framework: Annotated[
        str | None, option("reveal.framework", autocompletion=completion.frameworks)
    ] = None,
    kernel: Annotated[str | None, option("reveal.kernel")] = None,
    abi: Abi = None,
    python: Interpreter = None,
    k: Annotated[int, option("reveal.k", min=1, max=_LEAVES)] = 64,
    m: Annotated[int, option("reveal.m", min=1)] = 32,
    n: Annotated[int, option("reveal.n", min=1)] = 32,
    row: Annotated[int, option("reveal.row", min=0)] = 0,
    column: Annotated[int, option("reveal.column", min=0)] = 0,
    bias: Annotated[bool, option("reveal.bias", "--bias")] = False,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    settings: options.Settings = None,
    svg: Annotated[Path | None, option("reveal.svg")] = None,
    as_json: options.AsJson = False,
    timeout: options.Timeout = 120.0,
) -> None:
    """Reveal in which order a framework or a kernel adds.

    This is the tree of additions behind one output element, checked on random data. Ends with
    status 1 if the framework fails, 2 if the question cannot be answered because the sum has no
    fixed order, or is exact or compensated.
    """
    import json

    from refkernels.diagnosis.summation import RevealError
    from refkernels.diagnosis.summation.boxes import product_of, scatter_of
    from refkernels.frameworks import catalog
    from refkernels.frameworks.gateway import Session, split_settings
    from refkernels.target_names import merged

    names, _ = asked_targets(framework and [framework], kernel and [kernel], [op], abi, python)
    if len(names) != 1:
        refuse("Name one --framework or one --kernel: that whose order is revealed.")
    target = names[0]
    if product_of(op) is None and scatter_of(op) is None:  # one value for each row
        n, column = 1, 0
    try:
        _check_size(m, n, k, m * n * k if scatter_of(op) else 0)
        setting_values = options.parse_settings(settings)
        spec, name = catalog.target(target)
        split_settings(
            spec.framework, merged(setting_values, name)
        )  # refused before anything starts
        with Session(target, setting_values, timeout) as session:
            tree = _revealed(session, op, name.device or device or "cpu", dtype, k=k, m=m, n=n,
                              row=row, column=column, bias=bias)  # fmt: skip
    except (ValueError, RevealError, catalog.FrameworkError) as error:
        refuse(str(error))
    except _FrameworkFault as fault:
        typer.echo(f"refkernels: {fault}", err=True)
        raise typer.Exit(1) from None
    if svg is not None:
        _draw(tree, svg)
    if as_json:
        typer.echo(json.dumps(tree))
    else:
        _print(tree, svg)


def _check_size(m: int, n: int, k: int, whole: int) -> None:
    """Raises ValueError if an array of the question has more than MOST_ELEMENTS elements. `whole`:
    the elements of an array with all three axes, if there is one."""
    largest = max(m * k, k * n, m * n, whole)
    if largest > options.MOST_ELEMENTS:
        raise ValueError(
            f"--m {m}, --n {n} and --k {k} make an array of {largest:,} elements, more than "
            f"{options.MOST_ELEMENTS:,}: ask for fewer rows or columns."
        )


class _FrameworkFault(Exception):
    """The framework failed, not the question."""


def _revealed(session: Any, op: str, device: str, dtype: str, **element: Any) -> dict[str, Any]:
    """The tree of an element with its properties, as strict JSON."""
    from refkernels import registry
    from refkernels.arithmetic import formats
    from refkernels.diagnosis.summation import RevealError
    from refkernels.diagnosis.summation.boxes import OpBox
    from refkernels.diagnosis.summation.orders import reveal_order
    from refkernels.op import DTYPES
    from refkernels.suggestion import did_you_mean

    if dtype not in DTYPES:
        raise ValueError(f"There is no dtype {dtype!r}: {did_you_mean(dtype, DTYPES)}.")

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        leaves = registry.get(op).differentiated
        reply = session.run(op, box.direction, inputs, {}, device, leaves=leaves)
        if not reply.ok:
            raise _FrameworkFault(reply.reason)
        return dict(reply.outputs)

    box = OpBox(run, op, dtype=dtype, **element)
    try:
        with _progress(f"revealing {op} of {session.name}") as progress:
            order = reveal_order(box, progress)
    except RevealError as error:
        if box.mean is None:
            raise
        raise RevealError(
            f"{error} A mean that is not a sum divided at the end, such as a running mean, has no "
            "order to reveal."
        ) from None
    tree = order.tree
    # Only a product is rounded before it is added.
    roundings = tree.roundings() if box.product is not None else tree.depth
    replayed = formats.get(order.accumulator) if order.outputs else None
    return {
        "schema": SCHEMA,
        "kind": "summation_tree",
        "op": op,
        "framework": str(session.name.anywhere),
        "version": session.info.get("version"),
        "device": device,
        "dtype": dtype,
        **element,
        "direction": box.direction,
        "output": box.output,
        "inputs": box.shapes,
        "products": box.product is not None,
        "leaves": tree.leaves,
        "nodes": [list(children) for children in tree.nodes],
        "fused": [leaf for leaf in tree.fused if leaf >= 0],
        "name": order.name,
        "questions": order.questions,
        "depth": tree.depth,
        "roundings": roundings,
        "bound": roundings * replayed.u / (1.0 - roundings * replayed.u) if replayed else None,
        "replay": {
            "equal": order.equal,
            "outputs": order.outputs,
            "accumulator": order.accumulator,
        },
        "environment": session.info.get("environment"),
    }


@contextmanager
def _progress(label: str) -> Iterator[Any]:
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress_bar(*columns, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def show(questions: int) -> None:
            bar.start()
            bar.update(task, description=f"{label}: {questions:,} questions")

        yield show


def _print(tree: dict[str, Any], svg: Path | None) -> None:
    from rich.console import Console

    from refkernels.reporting.orders import order_lines

    console = Console(highlight=False)
    for line in order_lines(tree):
        console.print(line, markup=False, soft_wrap=True)
    if svg is not None:
        console.print(f"Drawn: {svg}", markup=False, soft_wrap=True)


def _draw(tree: dict[str, Any], path: Path) -> None:
    from refkernels.reporting.orders import draw_order

    with refusing(path):
        write_whole(path, draw_order(tree).svg)
