"""Oracles of users: formulas in xp, and PyTorch's functions and modules, read as programs.

    oracle(formula, "x[... n] -> y[... n]")      the reference kernel of a formula
    oracle(function, (x, w))                     ... of a torch function or module, on such inputs
    named("FILE.py:NAME", arrays)                the op of either, in a file

`program` holds a program as data, `operators` the table of what each operator computes,
`program_op` the op that a program is, `sources` the export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from refkernels.op import Op
from refkernels.ops.reference_kernel import Oracle
from refkernels.ops.reference_kernel import oracle as of_formula
from refkernels.programs.program import ProgramError

__all__ = ["ProgramError", "named", "oracle"]


def oracle(
    formula: Any, signature: str | Sequence[Any] | Mapping[str, Any], coupled: str = "",
    *, name: str | None = None, **options: Any,
) -> Oracle:  # fmt: skip
    """The reference kernel of a user's formula, or of a torch function or module.

    formula     f(xp, *arrays, **params) for a formula (`ops.reference_kernel.oracle` lists what it
                takes); or a function or an nn.Module of PyTorch
    signature   a formula's signature; or tensors with which the function is called: a sequence, or
                a mapping by the names of its parameters. Shapes, dtypes and numbers that are not
                tensors are fixed by them; so is the module's mode, training or not
    name        for messages; the function's by default

    The function is read by torch.export. Its inputs keep their names; a module's parameters and
    buffers are inputs that may be left out (they are then as they were), and parameters have
    gradients. Outputs are y, or y0, y1, ... Its answer is that of exact arithmetic: casts between
    formats of floats round nothing, integers are integers. The bound is proven for kernels that
    compute the same operators, each in its dtype or a wider one, with sums in any order.

    Raises ProgramError, one sentence with the user's line, for what cannot be read
    (docs/operators.md); ValueError and TypeError as `ops.reference_kernel.oracle` does.
    """
    if isinstance(signature, str):
        return of_formula(formula, signature, coupled, name=name, **options)
    from refkernels.programs.program_op import op_of
    from refkernels.programs.sources import of_object

    by_name = isinstance(signature, Mapping)
    program = of_object(formula, *((), signature) if by_name else (tuple(signature), {}))
    return Oracle(op_of(program, name or program.name))


def named(text: str, arrays: Mapping[str, Any] | None = None) -> Op:
    """The op of FILE.py:NAME: an Oracle or an Op if the file imports refkernels, else a torch
    function or module, called with these arrays or with the file's get_inputs().

    Raises ProgramError, in one sentence, and FrameworkError if no interpreter has torch.
    """
    from refkernels import registry
    from refkernels.frameworks.remote.task import loaded
    from refkernels.programs.program_op import op_of
    from refkernels.programs.sources import of_file

    file, _, name = text.rpartition(":")
    path = Path(file)
    if path.suffix != ".py" or not name.isidentifier() or not path.is_file():
        raise ProgramError(f"{text} is no FILE.py:NAME of a file that is there.")
    if "refkernels" in path.read_text(encoding="utf-8", errors="replace"):
        try:
            found = getattr(loaded(f"oracle_{path.stem}", str(path)), name, None)
        except Exception as error:
            raise ProgramError(f"{path} does not run ({type(error).__name__}: {error}).") from error
        op = getattr(found, "op", found)
        if not isinstance(op, Op):
            raise ProgramError(f"{text} is no oracle: it must be what refkernels.oracle() gives.")
        return op
    title = name if name not in registry.ops() else f"{path.stem}_{name}"
    return op_of(of_file(path, name, arrays), title)
