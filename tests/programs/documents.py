"""Programs as the exporter writes them, of a few calls."""

from typing import Any

import numpy as np

from refkernels.op import Op
from refkernels.programs.program import read
from refkernels.programs.program_op import op_of


def tensor(shape: Any, dtype: Any = "float32") -> dict[str, Any]:
    return {"shape": list(shape), "dtype": str(dtype)}


def call(name: str, operator: str, arguments: Any, *gives: Any, several: bool = False) -> Any:
    """A node. Arguments are as the exporter writes them."""
    return {"name": name, "operator": operator, "arguments": arguments, "gives": list(gives),
            "line": "f.py:1", "several": several, "value": None}  # fmt: skip


def document(nodes: Any, arrays: dict[str, Any], kinds: Any = ()) -> dict[str, Any]:
    """That of nodes, the last of which gives the output. The first array is an input, others are of
    `kinds`, inputs by default."""
    kinds = [*kinds, *["input"] * (len(arrays) - len(kinds))]
    inputs = [
        {"node": name, "name": name, "kind": kind, "array": name, **tensor(a.shape, a.dtype)}
        for (name, a), kind in zip(arrays.items(), kinds, strict=True)
    ]
    return {"schema": 1, "torch": "2.13.0", "custom_gradients": [], "inputs": inputs,
            "nodes": nodes, "outputs": [nodes[-1]["name"]]}  # fmt: skip


def program(nodes: Any, arrays: dict[str, Any], kinds: Any = ()) -> Op:
    return op_of(read(document(nodes, arrays, kinds), arrays, "f"), "f")


def single(operator: str, arguments: Any, shape: Any, **arrays: Any) -> Op:
    """The op of one call, some of whose arguments are the names of arrays."""
    given = [{"node": a} if isinstance(a, str) and a in arrays else a for a in arguments]
    return program([call("y", f"aten.{operator}", given, tensor(shape))], arrays)


def encoded(item: Any, arrays: dict[str, Any]) -> Any:
    """An argument whose arrays are new inputs."""
    if isinstance(item, list | tuple):
        return [encoded(part, arrays) for part in item]
    if not isinstance(item, np.ndarray):
        return item
    name = f"x{len(arrays)}"
    arrays[name] = item
    return {"node": name}
