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


def modules() -> dict[str, ast.Module]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in paths
    }


def decorators(node: ast.AST) -> list[str]:
    """The names of njit and inner among a function's decorators; "njit(...)" with options."""
    if not isinstance(node, ast.FunctionDef):
        return []
    ends = {ast.Name: "", ast.Call: "(...)"}
    named = [(getattr(one, "func", one), ends.get(type(one), "?")) for one in node.decorator_list]
    return [
        name.id + end
        for name, end in named
        if isinstance(name, ast.Name) and name.id in ("njit", "inner")
    ]


def outside_kernels(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not in_kernels(child)]


def in_kernels(node: ast.AST) -> bool:
    """A kernel, or a rule that generated kernels are made of (`contexts.ball_rules`)."""
    listed = getattr(node, "decorator_list", ())
    rules = [one for one in listed if isinstance(one, ast.Name) and one.id == "rule"]
    return bool(rules or decorators(node))


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def used_from_python(trees: dict[str, ast.Module]) -> tuple[set[Kernel], set[str]]:
    """What code outside kernels names, by module and name; and all names after a dot."""
    used: set[Kernel] = set()
    attributes: set[str] = set()
    for module, tree in trees.items():
        nodes = list(outside_kernels(tree))
        origins = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in nodes:
            if isinstance(node, ast.Name):
                used |= {(module, node.id), origins.get(node.id, ("", ""))}
            elif isinstance(node, ast.Attribute) and not is_self(node.value):
                attributes.add(node.attr)
    return used, attributes


def test_the_kernels_that_only_kernels_call_are_inner_and_no_others() -> None:
    trees = modules()
    used, attributes = used_from_python(trees)
    found: dict[Kernel, list[str]] = {
        (module, node.name): kinds
        for module, tree in trees.items()
        if module.startswith("refkernels.")
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and (kinds := decorators(node))
    }
    wrong = [
        (*kernel, kinds)
        for kernel, kinds in found.items()
        if kinds != ["njit(...)"]  # released, or inlined
        and kinds[0].startswith("inner") is (kernel in used or kernel[1] in attributes)
    ]
    assert not wrong, wrong
    assert sum(kinds[0].startswith("inner") for kinds in found.values()) > 150


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
