"""Matches the layers and parameters of two runs: by order, type, shape and values.

Each framework names layers and weights in its own way, and some hold a matrix transposed. Two
layers may match where they have one op and their weights have the same shapes, transposed or not.
Among those, order decides, by the longest common subsequence; the rest is matched by equal values.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from refkernels.alignment.kinds import WEIGHTS, LayerKind, kind_of, synonyms
from refkernels.alignment.run import CaptureError, Layer, Rank, StepTensors
from refkernels.alignment.tensors import Array, grouped
from refkernels.alignment.traces.rows import joined, rows


@dataclass(frozen=True)
class Matched:
    """`layers` and `parameters`: name in A to name in B. `only_a`, `only_b`: layers without a
    partner; `lone_a`, `lone_b`: parameters without one."""

    layers: Mapping[str, str]
    parameters: Mapping[str, str]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    lone_a: tuple[str, ...] = ()
    lone_b: tuple[str, ...] = ()


def matched(a: Rank, b: Rank, names: Mapping[str, str] | None = None) -> Matched:
    """The matched layers and parameters of two runs. `names`: B's names of some of A's, which take
    precedence. Raises CaptureError for a name that a run does not have."""
    names = names or {}
    for rank, given in ((a, names.keys()), (b, names.values())):
        for unknown in {*given} - {*rank.layers, *rank.parameters}:
            raise CaptureError(f"The map names {unknown!r}, which {rank.folder} does not have.")
    called_a, called_b = (
        [layer for layer in rank.layers.values() if layer.calls and layer.name not in given]
        for rank, given in ((a, names.keys()), (b, names.values()))
    )
    parameters = _by_value(a, b) | {n: other for n, other in names.items() if n in a.parameters}
    layers = {name: other for name, other in names.items() if name in a.layers}
    layers |= _by_weights(called_a, called_b, parameters)
    layers |= _in_order(
        a, b,
        [layer for layer in called_a if layer.name not in layers],
        [layer for layer in called_b if layer.name not in layers.values()],
    )  # fmt: skip
    for name, partner in layers.items():
        words = {_word(word): full for word, full in b.layers[partner].parameters.items()}
        for name_in_layer, parameter in a.layers[name].parameters.items():
            partner_of_weight = words.get(_word(name_in_layer))
            if partner_of_weight is not None and partner_of_weight not in parameters.values():
                parameters.setdefault(parameter, partner_of_weight)
    taken = {*parameters, *parameters.values()}
    shared = [name for name in a.parameters if name in b.parameters and name not in taken]
    shapes = {n: [sorted(rank.parameters[n].shape) for rank in (a, b)] for n in shared}
    parameters |= {name: name for name in shared if shapes[name][0] == shapes[name][1]}
    lone_a = [name for name in a.parameters if name not in parameters]
    lone_b = [name for name in b.parameters if name not in parameters.values()]
    in_rows = _joined(a, b, lone_a, lone_b)
    split = {
        layer.name
        for layer in (*called_a, *called_b)
        if layer.parameters and in_rows.issuperset(layer.parameters.values())
    }
    return Matched(
        layers,
        parameters,
        tuple(one.name for one in called_a if one.name not in {*layers, *split}),
        tuple(one.name for one in called_b if one.name not in {*layers.values(), *split}),
        tuple(name for name in lone_a if name not in in_rows),
        tuple(name for name in lone_b if name not in in_rows),
    )


def equal(first: Array, second: Array) -> bool:
    """Whether two weights have the same values, possibly transposed."""
    forms = (first, first.T) if first.ndim == 2 else (first,)
    return any(form.shape == second.shape and form.tobytes() == second.tobytes() for form in forms)


def unequal(
    a: StepTensors, b: StepTensors, partners: Mapping[str, str]
) -> Iterator[tuple[str, Array, Array, int]]:
    """The weights that differ before two steps: A's name, both values, B's turned as A's is, and
    how many elements differ: all of them where shapes do."""
    for name, partner in partners.items():
        first, second = a.parameter(name), b.parameter(partner)
        if first is not None and second is not None and not equal(first, second):
            second = oriented(first, second)
            alike = first.shape == second.shape
            yield name, first, second, int(np.sum(first != second)) if alike else first.size


def permuted(first: Array, second: Array) -> bool:
    """Whether two weights have the same rows, or columns, in another order."""
    pairs = zip(rows(first), rows(second), strict=False)
    return first.ndim > 1 and any(sorted(a) == sorted(b) for a, b in pairs)


def oriented(target: Array, array: Array, like: Array | None = None) -> Array:
    """`array`, transposed where that makes it more like `target`: frameworks hold matrices either
    way. `like`: another array of the same run, of `target`'s shape or its transpose, to decide
    by."""
    guide = array if like is None else like
    if target.ndim != 2 or guide.ndim != 2:
        return array
    straight = target.shape == guide.shape and np.count_nonzero(target != guide)
    turned = target.shape == guide.T.shape and np.count_nonzero(target != guide.T)
    if straight is False or (turned is not False and turned < straight):
        return array.T
    return array


def _joined(a: Rank, b: Rank, lone_a: list[str], lone_b: list[str]) -> set[str]:
    """Parameters without a partner that are made of the rows, or columns, of the other run's: fused
    projections of one run, split in the other."""
    if not a.steps or not b.steps:
        return set()
    weights = [
        {name: weight for name in lone if (weight := tensors.parameter(name)) is not None}
        for tensors, lone in ((a.tensors(a.steps[0]), lone_a), (b.tensors(b.steps[0]), lone_b))
    ]
    return {*joined(*weights), *joined(*weights[::-1])}


def _word(name_in_layer: str) -> str:
    return next((word for word in WEIGHTS if name_in_layer in synonyms(word)), name_in_layer)


def _key(rank: Rank, layer: Layer) -> tuple[object, ...]:
    kind = kind_of(layer, {})  # whatever its settings, such as GELU by tanh
    op = kind.op if isinstance(kind, LayerKind) else layer.type
    known = (n for n in layer.parameters.values() if n in rank.parameters)
    shapes = sorted(tuple(sorted(rank.parameters[name].shape)) for name in known)
    return op, *shapes


def _by_weights(
    layers_a: list[Layer], layers_b: list[Layer], parameters: Mapping[str, str]
) -> dict[str, str]:
    """Layers whose weights are partners: those of one layer, by the same names. Layers that share
    their weights are partners in the order of their calls."""
    owners, found = grouped(layers_b, lambda layer: tuple(layer.parameters.values())), {}
    for layer in layers_a:
        weights = tuple(parameters.get(name, "") for name in layer.parameters.values())
        if weights and all(weights) and owners.get(weights):
            found[layer.name] = owners[weights].pop(0).name
    return found


def _in_order(a: Rank, b: Rank, layers_a: list[Layer], layers_b: list[Layer]) -> dict[str, str]:
    keys = [_key(a, layer) for layer in layers_a], [_key(b, layer) for layer in layers_b]
    blocks = difflib.SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    return {
        layers_a[block.a + k].name: layers_b[block.b + k].name
        for block in blocks
        for k in range(block.size)
    }


def _by_value(a: Rank, b: Rank) -> dict[str, str]:
    """Parameters whose values in the first captured step equal those of exactly one other."""
    if not a.steps or not b.steps:
        return {}
    first, second = a.tensors(a.steps[0]), b.tensors(b.steps[0])
    partners: dict[str, str] = {}
    left = {name: array for name in b.parameters if (array := second.parameter(name)) is not None}
    for name in a.parameters:
        own = first.parameter(name)
        alike = [n for n, other in left.items() if own is not None and equal(own, other)]
        if len(alike) == 1:
            partners[name] = alike[0]
            del left[alike[0]]
    return partners
