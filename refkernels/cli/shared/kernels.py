"""Turns `--kernel`, `--op`, `--abi` and `--python` into targets' names, as a user can type them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from refkernels.cli.shared.endings import refuse
from refkernels.cli.shared.wording import option

if TYPE_CHECKING:
    from refkernels.target_names import TargetName

Kernels = Annotated[list[str] | None, option("Kernels")]
Abi = Annotated[str | None, option("Abi")]
Interpreter = Annotated[str | None, option("Interpreter")]


def asked_targets(
    frameworks: Sequence[str] | None,
    kernels: Sequence[str] | None,
    ops: Sequence[str],
    abi: str | None,
    python: str | None,
) -> tuple[list[str], list[str]]:
    """The targets of --kernel and --framework, in this order, and the ops that the kernels compute.
    Refuses --abi and --python without a kernel."""
    if not kernels and (abi or python):
        refuse("--abi and --python describe a --kernel: give one.")
    names, computed = named_kernels(kernels or (), ops, abi, python)
    return [*names, *(frameworks or ())], computed


def named_kernels(
    kernels: Sequence[str],
    ops: Sequence[str],
    abi: str | None,
    python: str | None,
    otherwise: str = "a framework is --framework",
) -> tuple[list[str], list[str]]:
    """The targets of the kernels, and the ops that they compute: the given op, or the one in the
    function's name. Refuses anything but a kernel, in a sentence; `otherwise`: what the command
    takes besides kernels."""
    from refkernels import registry
    from refkernels.frameworks import catalog
    from refkernels.target_names import parse, with_setting

    names, computed = [], []
    for text in kernels:
        try:
            ops = [registry.get(op).name if ".py:" in op else op for op in ops]
            name = with_setting(parse(text), "abi", abi)
            if name.kernel is None:
                refuse(f"{text} is not a kernel: write FILE.py:FUNCTION; {otherwise}.")
            name = with_setting(name, "python", python)
            if len(ops) == 1 and not _names_op(name, ops[0]):
                name = with_setting(name, "op", ops[0])
            spec, _ = catalog.target(str(name))
        except (ValueError, catalog.FrameworkError) as error:
            refuse(f"{str(error).rstrip('.')}.")
        assert spec.framework.kernel is not None
        names.append(str(name))
        computed.append(str(spec.framework.kernel["op"]))
    return names, list(dict.fromkeys(computed))


def _names_op(name: TargetName, op: str) -> bool:
    """Whether the function's name alone implies the op."""
    from refkernels.frameworks import catalog

    try:
        kernel = catalog.target(str(name))[0].framework.kernel
    except catalog.FrameworkError:
        return False
    return kernel is not None and kernel["op"] == op
