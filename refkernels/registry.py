"""Finds the oracle modules by their suffix, `_ref`, and their ops by name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING

import refkernels
from refkernels.suggestion import instead, quoted

if TYPE_CHECKING:
    from refkernels.op import Op


@functools.cache
def families() -> tuple[str, ...]:
    """The names of the oracle modules: ("layernorm_ref", "matmul_ref", "trig_ref", ...)."""
    found = pkgutil.iter_modules(refkernels.__path__)
    return tuple(sorted(module.name for module in found if module.name.endswith("_ref")))


@functools.cache
def ops() -> dict[str, Op]:
    """Every op by name, family by family."""
    return {name: op for family in families() for name, op in _ops_of(family).items()}


@functools.cache
def _ops_of(family: str) -> dict[str, Op]:
    module = importlib.import_module(f"refkernels.{family}")
    return {op.name: op for op in module.OPS}


def get(name: str | Op) -> Op:
    """The op of that name; an `Op` of one's own is itself. Raises ValueError, with the known names,
    for any other, and TypeError for what is no name."""
    from refkernels.op import Op

    if isinstance(name, Op):
        return name
    if not isinstance(name, str):
        raise TypeError(f"An op is asked for by its name, not by a {type(name).__name__}.")
    # The family that has the op's name is looked at first: to import all takes half a second.
    for family in sorted(families(), key=lambda one: one != f"{name}_ref"):
        if name in _ops_of(family):
            return _ops_of(family)[name]
    raise ValueError(f"There is no op {quoted(name)}: {instead(name, ops())}.")
