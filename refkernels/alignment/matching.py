"""Which layer of one run is which of the other's: by order, type, shape and values.

Frameworks name layers and weights each in their own way, and some hold a matrix the other way
round. Two layers can be the same where they are of one op and their weights have the same shapes,
turned or not; of those that can be, order decides, by the longest common subsequence; what remains
is matched by equal values. A map (name in A to name in B) goes before all of this.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from refkernels.alignment.kinds import LayerKind, kind_of
from refkernels.alignment.question import Array
from refkernels.alignment.run import Layer, Rank
from refkernels.alignment.tensors import CaptureError

_WORDS = {"gamma": "weight", "embedding_table": "weight", "beta": "bias"}
_OP = {"gelu_tanh": "gelu"}  # the same place in a model, by another formula


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


def matched(a: Rank, b: Rank, given: Mapping[str, str] | None = None) -> Matched:
    """The layers and parameters of two runs. Raises CaptureError for a map that names what is not
    there."""
    given = dict(given or {})
    _check(given, a, b)
    mine = [one for one in a.layers.values() if one.calls and one.name not in given]
    other = [one for one in b.layers.values() if one.calls and one.name not in given.values()]
    layers = {name: partner for name, partner in given.items() if name in a.layers}
    layers |= _in_order(a, b, mine, other)
    parameters = {name: partner for name, partner in given.items() if name in a.parameters}
    for name, partner in layers.items():
        words = {_word(own): of for own, of in b.layers[partner].parameters.items()}
        for own, of in a.layers[name].parameters.items():
            if _word(own) in words:
                parameters.setdefault(of, words[_word(own)])
    parameters |= _same_name(a, b, parameters)
    parameters |= _by_value(a, b, parameters)
    return Matched(
        layers,
        parameters,
        tuple(one.name for one in mine if one.name not in layers),
        tuple(one.name for one in other if one.name not in layers.values()),
        tuple(name for name in a.parameters if name not in parameters),
        tuple(name for name in b.parameters if name not in parameters.values()),
    )


def equal(one: Array, other: Array) -> bool:
    """Whether two weights have the same values, one of them turned or not."""
    return any(
        array.shape == other.shape and array.tobytes() == other.tobytes()
        for array in (one, *([one.T.copy()] if one.ndim == 2 else []))
    )


def oriented(one: Array, other: Array, like: Array | None = None) -> Array:
    """`other`, turned where that makes it more like `one`: frameworks hold matrices either way.
    `like`: an array of the other's, and of `one`'s shape or its turned shape, to decide by."""
    seen = other if like is None else like
    if one.ndim != 2 or seen.ndim != 2:
        return other
    straight = one.shape == seen.shape and np.count_nonzero(one != seen)
    turned = one.shape == seen.T.shape and np.count_nonzero(one != seen.T)
    if straight is False or (turned is not False and turned < straight):
        return other.T
    return other


def _check(given: Mapping[str, str], a: Rank, b: Rank) -> None:
    for names, rank in ((given.keys(), a), (given.values(), b)):
        known = {*rank.layers, *rank.parameters}
        if strange := [name for name in names if name not in known]:
            raise CaptureError(f"The map names {strange[0]!r}, which {rank.folder} does not have.")


def _word(own: str) -> str:
    return _WORDS.get(own, own)


def _key(rank: Rank, layer: Layer) -> tuple[object, ...]:
    kind = kind_of(layer, layer.hyperparameters)
    op = _OP.get(kind.op, kind.op) if isinstance(kind, LayerKind) else layer.type
    shapes = sorted(
        (_word(own), tuple(sorted(rank.parameters[of].shape)))
        for own, of in layer.parameters.items()
        if of in rank.parameters
    )
    return op, *shapes


def _in_order(a: Rank, b: Rank, mine: list[Layer], other: list[Layer]) -> dict[str, str]:
    keys = [_key(a, one) for one in mine], [_key(b, one) for one in other]
    blocks = difflib.SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    return {
        mine[block.a + at].name: other[block.b + at].name
        for block in blocks
        for at in range(block.size)
    }


def _same_name(a: Rank, b: Rank, parameters: Mapping[str, str]) -> dict[str, str]:
    taken = set(parameters.values())
    return {
        name: name
        for name in a.parameters
        if name not in parameters
        and name in b.parameters
        and name not in taken
        and sorted(a.parameters[name].shape) == sorted(b.parameters[name].shape)
    }


def _by_value(a: Rank, b: Rank, parameters: Mapping[str, str]) -> dict[str, str]:
    """Parameters whose values in the first captured step are those of one other alone."""
    if not a.steps or not b.steps:
        return {}
    first, second = a.tensors(a.steps[0]), b.tensors(b.steps[0])
    taken, found = set(parameters.values()), {}
    for name in a.parameters:
        array = None if name in parameters else first.parameter(name)
        if array is None:
            continue
        alike = [
            partner
            for partner in b.parameters
            if partner not in taken
            and (other := second.parameter(partner)) is not None
            and other.size == array.size
            and equal(array, other)
        ]
        if len(alike) == 1:
            found[name] = alike[0]
            taken.add(alike[0])
    return found
