"""A kernel that only kernels call is `inner`, which spares its entry from Python; no other is.

Python names the kernels that it calls, by themselves or after a dot, or they release the lock
(`nogil=True`), which only an entry from Python can.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from refkernels.arithmetic.jit import inner, njit

ROOT = Path(__file__).parent.parent
FOLDERS = ("refkernels", "tests", "benchmarks", "tools")
Kernel = tuple[str, str]  # module, name


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Those of the project, without kernels as users write them, which have names of their own."""
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        if path.parent in (ROOT / "tests" / "judge" / "right", ROOT / "tests" / "judge" / "cheats"):
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name, ast.parse(path.read_text("utf-8"))


def decorators(node: ast.AST) -> list[str]:
    """The names of njit and inner among a function's decorators; "njit(...)" with options."""
    if not isinstance(node, ast.FunctionDef):
        return []
    ends = {ast.Name: "", ast.Call: "(...)"}
    named = [
        (getattr(decorator, "func", decorator), ends.get(type(decorator), "?"))
        for decorator in node.decorator_list
    ]
    return [
        name.id + end
        for name, end in named
        if isinstance(name, ast.Name) and name.id in ("njit", "inner")
    ]


def outside_kernels(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if not (isinstance(node, ast.FunctionDef) and in_kernels(node)):
            yield node
            waiting += ast.iter_child_nodes(node)


def in_kernels(node: ast.FunctionDef) -> bool:
    """A kernel, or a rule that generated kernels are made of (`contexts.ball_rules`)."""
    listed = node.decorator_list
    rules = [
        decorator
        for decorator in listed
        if isinstance(decorator, ast.Name) and decorator.id == "rule"
    ]
    return bool(rules or decorators(node))


def used_from_python(module: str, tree: ast.Module) -> tuple[set[Kernel], set[str]]:
    """What a module's code outside kernels names, by module and name; and all names after a dot."""
    nodes = list(outside_kernels(tree))
    origins = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    used = {(module, name) for name in names} | {origins.get(name, ("", "")) for name in names}
    dotted = (node for node in nodes if isinstance(node, ast.Attribute))
    return used, {node.attr for node in dotted if ast.unparse(node.value) != "self"}


def test_the_kernels_that_only_kernels_call_are_inner_and_no_others() -> None:
    used: set[Kernel] = set()
    attributes: set[str] = set()
    kernels: dict[Kernel, list[str]] = {}
    handed: set[str] = set()  # to `filled`, which makes kernels of them
    for module, tree in modules():
        of_module, dotted = used_from_python(module, tree)
        if ("refkernels.arithmetic.filling", "filled") in of_module:
            handed |= dotted | {name for _, name in of_module}
        used |= of_module
        attributes |= dotted
        if module.startswith("refkernels."):
            defined = (node for node in tree.body if isinstance(node, ast.FunctionDef))
            kernels |= {
                (module, function.name): kinds
                for function in defined
                if (kinds := decorators(function))
            }
    wrong = [
        (*kernel, kinds)
        for kernel, kinds in kernels.items()
        if kinds != ["njit(...)"]  # released, or inlined
        and kinds[0].startswith("inner") is (kernel in used or kernel[1] in attributes)
        and not (kinds[0].startswith("inner") and kernel[1] in handed)
    ]
    assert not wrong, wrong
    assert sum(kinds[0].startswith("inner") for kinds in kernels.values()) > 100


def test_an_inner_kernel_refuses_to_be_called_from_python() -> None:
    @inner
    def double(x):  # type: ignore[no-untyped-def]
        return x + x

    @njit
    def fourfold(x):  # type: ignore[no-untyped-def]
        return double(double(x))

    assert fourfold(np.float32(1.5)) == 6.0
    with pytest.raises(TypeError, match="double is called by kernels only"):
        double(1.5)
    assert double.py_func(1.5) == 3.0
