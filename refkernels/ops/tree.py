"""Trees: the form of an oracle's results, by the names of its signature.

One output is returned bare; several form a NamedTuple, in the signature's order; names with a dot
form a NamedTuple within it (`state.exp_avg`); a list of arrays is a tuple. An absent output, such
as the gradient of an input that was left out, is None.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from refkernels.arguments import as_mapping

_class = functools.cache(namedtuple)


def tree(name: str, values: Mapping[str, Any]) -> Any:
    """The values of these (dotted) names as a tree; `name` is the name of the tuple's class."""
    if len(values) == 1 and "." not in next(iter(values)):
        return next(iter(values.values()))
    return _grown(name, values)


def _grown(name: str, values: Mapping[str, Any]) -> Any:
    branches: dict[str, Any] = {}
    for path, value in values.items():
        first, dot, subpath = path.partition(".")
        if dot:
            branches.setdefault(first, {})[subpath] = value
        else:
            branches[first] = value
    fields = {
        first: _grown(first.title(), value) if isinstance(value, dict) else value
        for first, value in branches.items()
    }
    return _class(name, tuple(fields))(**fields)


def leaves(node: Any, prefix: str = "") -> dict[str, Any]:
    """The arrays of a tree of mappings and NamedTuples, by dotted names."""
    if isinstance(node, tuple) and hasattr(node, "_asdict"):
        node = node._asdict()
    if not isinstance(node, Mapping):
        return {prefix: node}
    arrays: dict[str, Any] = {}
    for name, value in as_mapping(node, prefix or "the inputs").items():
        arrays.update(leaves(value, f"{prefix}.{name}" if prefix else name))
    return arrays
