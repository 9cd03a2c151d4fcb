"""Finds oracle modules by their suffix `_ref`, and their ops by name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import refkernels
from refkernels.suggestion import did_you_mean, quoted

if TYPE_CHECKING:
    from refkernels.op import Op

OWN: dict[str, Op] = {}  # of users, by FILE.py:NAME and by the op's name


@functools.cache
def families() -> tuple[str, ...]:
    """The names of the oracle modules: ("layernorm_ref", "matmul_ref", "trig_ref", ...)."""
    modules = pkgutil.iter_modules(refkernels.__path__)
    return tuple(sorted(module.name for module in modules if module.name.endswith("_ref")))


@functools.cache
def ops() -> dict[str, Op]:
    """Every op by name, family by family."""
    return {name: op for family in families() for name, op in _ops_of(family).items()}


@functools.cache
def _ops_of(family: str) -> dict[str, Op]:
    from refkernels.ops.signs import of_function

    module = importlib.import_module(f"refkernels.{family}")
    return {op.name: of_function(op) for op in module.OPS}


def get(name: str | Op | Any, inputs: Mapping[str, Any] | None = None) -> Op:
    """The op of that name, of an `Oracle`, or of FILE.py:NAME (`programs.named`) on such inputs; an
    `Op` stays as it is. Raises ValueError for an unknown name, TypeError for anything else."""
    from refkernels.op import Op

    record = getattr(name, "op", name)
    if isinstance(record, Op):
        return record
    if not isinstance(name, str):
        raise TypeError(f"Give an op's name, not a {type(name).__name__}.")
    if ".py:" in name and name not in OWN:
        own = importlib.import_module("refkernels.programs").named(name, inputs)
        OWN[name] = OWN[own.name] = own
    if name in OWN:
        return OWN[name]
    # The family that has the op's name comes first: importing all families takes half a second.
    for family in sorted(families(), key=lambda family: family != f"{name}_ref"):
        if name in _ops_of(family):
            return _ops_of(family)[name]
    named = did_you_mean(name, ops())
    raise ValueError(f"There is no op {quoted(name)}: {named}; `refkernels ops` lists all.")
