"""A user's kernel as a target: a function in a file, and the op that it computes.

    ./my_kernels.py:layernorm                   the op is read from the function's name
    ./my_kernels.py:fast_ln@op=layernorm        or is given
    ./triton_ln.py:layernorm@python=torch       in the interpreter of a framework, or at a path
    ./libmine.so:my_gelu@abi=float32* x%2C float32* y%2C int64 n

    op      the op; by default the longest one whose words follow one another in the function's
            name: fused_log_softmax is log_softmax. A name that ends in _backward, _bwd or _grad is
            the op's backward; FUNCTION_backward in the same file belongs to FUNCTION
    arrays  numpy, torch, jax or cupy: what the function takes and returns; by default the arrays
            of the first of torch, jax and cupy that its file imports, otherwise NumPy's
    python  the interpreter; this one by default
    abi     a C function's arguments (`remote/kernel_adapter.py`): needed for a library, and only
            there

The version of a kernel is a digest of its file, so that a run of another version is not resumed.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refkernels.frameworks import kernel_abi
from refkernels.frameworks.kernel_abi import KernelError
from refkernels.frameworks.synonyms import MEANINGS
from refkernels.suggestion import did_you_mean, quoted
from refkernels.target_names import TargetName

if TYPE_CHECKING:
    from refkernels.op import Op
    from refkernels.records.words import Direction

SETTINGS = ("op", "abi", "arrays", "python")
ARRAYS = ("numpy", "torch", "jax", "cupy")
_BACKWARD = {"backward", "bwd", "grad"}


@dataclass(frozen=True)
class KernelFacts:
    """A kernel as a target's name describes it: `literals` is for its adapter, `python` is its
    interpreter ("" for this one)."""

    op: str
    python: str
    literals: dict[str, Any]


def read(name: TargetName) -> KernelFacts:
    """The kernel that a target's name means. Raises KernelError for a missing file, a name without
    an op, and settings that do not fit the kernel."""
    assert name.kernel is not None
    path, function = Path(name.kernel.file).expanduser(), name.kernel.function
    settings = dict(name.settings)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise KernelError(
            f"{path} cannot be read ({error.strerror}): a kernel is FILE.py:FUNCTION, with the "
            "file's path from here"
        ) from None
    op, direction = _op_of(function, settings.get("op"))
    _check(path, settings, str(name.kernel))
    if path.suffix == ".py":
        _check_function(content, path, function, foreign="python" in settings)
    literals = {
        **facts_of(op, function),
        "file": str(path.absolute()),
        "version": f"sha256:{hashlib.sha256(content).hexdigest()[:12]}",
        "direction": direction,
        "abi": kernel_abi.read(settings.get("abi", ""), op, direction, str(name.kernel)),
        "arrays": settings.get("arrays", ""),
    }
    return KernelFacts(op.name, settings.get("python", ""), literals)


def facts_of(op: Op, function: str) -> dict[str, Any]:
    """What binds a function's parameters to an op's inputs and params (`kernel_adapter.call`)."""
    return {
        "function": function,
        "op": op.name,
        "inputs": {way: list(op.takes(way)) for way in op.directions},
        "optional": list(op.optional),
        "outputs": {way: list(op.names(way)) for way in op.directions},
        "params": dict(op.params),
        "meanings": MEANINGS,
    }


def functions(path: Path, op: str | None = None) -> list[str]:
    """The kernels of a Python file, in its order: top-level functions, and names that are bound to
    a call's result (`softmax = torch.compile(f)`). They have no leading underscore and are named
    after an op. With `op`: those named after it, or all functions where none is.

    Raises KernelError for a file that cannot be read or is not Python.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        raise KernelError(f"{path} cannot be read ({error.strerror})") from None
    except (SyntaxError, ValueError) as error:
        raise _not_python(path, error) from None
    defined = [part.name for part in tree.body if isinstance(part, ast.FunctionDef)]
    bound = [
        target.id
        for part in tree.body
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call)
        for target in part.targets
        if isinstance(target, ast.Name)
    ]
    names = [name for name in dict.fromkeys((*defined, *bound)) if not name.startswith("_")]
    matching = [
        name for name in names if op_named_by(name) is not None and op in (None, op_named_by(name))
    ]
    if op is None or matching:
        return matching
    return [name for name in names if name in defined]


def op_named_by(function: str) -> str | None:
    """The op that a function is named after."""
    try:
        return _op_of(function, None)[0].name
    except KernelError:
        return None


def _check(path: Path, settings: dict[str, str], kernel: str) -> None:
    arrays = settings.get("arrays")
    if arrays is not None and arrays not in ARRAYS:
        raise KernelError(f"arrays={arrays} is not one of {', '.join(ARRAYS)}")
    if path.suffix == ".py" and "abi" in settings:
        raise KernelError(f"{kernel} is Python, which has no abi: leave it out")
    if path.suffix != ".py" and not settings.get("abi", "").strip():
        raise KernelError(
            f"{kernel} is in a library, which does not say what it takes: give its arguments, "
            'such as --abi "float32* x, float32* y, int64 n"'
        )


def _check_function(content: bytes, path: Path, function: str, *, foreign: bool) -> None:
    """Refuse a name that the file does not define, without running the file. `foreign`: another
    interpreter runs it, which may read what this one does not."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        if foreign:
            return
        raise _not_python(path, error) from None
    nodes, imported = list(ast.walk(tree)), set[str]()
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef) and node.name == function:
            raise KernelError(
                f"{path}:{function} is no function that returns arrays: write one that calls it"
            )
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {(alias.asname or alias.name) for alias in node.names}
    dynamic = "*" in imported or "globals" in names  # names that only running the file shows
    if not dynamic and function not in names | imported:
        offered = [part.name for part in tree.body if isinstance(part, ast.FunctionDef)]
        raise KernelError(
            f"{path} has no function {quoted(function)}: {did_you_mean(function, offered)}"
        )


def _not_python(path: Path, error: Exception) -> KernelError:
    what = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
    return KernelError(f"{path} is not a Python file ({what})")


def _op_of(function: str, chosen: str | None) -> tuple[Op, Direction]:
    """The op and direction that a function's name gives, or the op that was chosen."""
    from refkernels import registry

    words = [word.lower() for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", function) if word]
    direction: Direction = "backward" if words and words[-1] in _BACKWARD else "forward"
    if chosen is not None:
        try:
            op = registry.get(chosen)
        except ValueError as error:
            raise KernelError(str(error).rstrip(".")) from None
    else:
        op = _named(words, function)
    if direction not in op.directions:
        raise KernelError(
            f"{function} is named as a backward kernel, but {op.name} has no backward"
        )
    return op, direction


def _named(words: list[str], function: str) -> Op:
    """The op with the longest name that consecutive words spell, and of those the last."""
    from refkernels import registry

    ops = {name.replace("_", ""): op for name, op in registry.ops().items()}
    ends = range(1, len(words) + 1)
    spelt = ["".join(words[start:end]) for end in ends for start in range(end)]
    if matches := sorted((name for name in spelt if name in ops), key=len):
        return ops[matches[-1]]
    raise KernelError(
        f"the name {quoted(function)} does not show its op: give --op, or write @op=NAME after "
        f"the function ({did_you_mean(function, registry.ops())})"
    )
