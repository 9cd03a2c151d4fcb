"""Independent elements of a formula, held against what changes with one intermediate number."""

import numpy as np
import pytest

from refkernels.contexts.doubles import Doubles
from refkernels.contexts.graph import Replacement
from refkernels.contexts.independence import components, units
from refkernels.contexts.record import record

XP = Doubles()


def _turned(xp, a):
    return xp.rearrange(lambda part: np.swapaxes(part, -1, -2), a)


def softmax(xp, x):
    e = xp.exp(x - xp.max(x))
    return e / xp.sum(e)


def attention(xp, x, y):
    return xp.matmul(softmax(xp, xp.matmul(x, _turned(xp, y))), y)


def projected(xp, x, y):
    """Attention whose keys and values are computed, as all rows share."""
    h = xp.matmul(x, y)
    return xp.matmul(softmax(xp, xp.matmul(h, _turned(xp, xp.exp(h)))), xp.tanh(h))


def gated(xp, x, y):
    h = xp.matmul(x, _turned(xp, y))
    return xp.rearrange(lambda a: a[..., :2], h) * xp.tanh(xp.rearrange(lambda a: a[..., 2:], h))


def scanned(xp, x):
    return xp.cumsum(x * x, axis=-2) * 3


def gathered(xp, x):
    return xp.take_along_axis(xp.exp(x), np.array([[0, 0, 1]] * 3)) + xp.mean(x * x)


def streamed(xp, x):
    mean, squares = xp.welford(x)
    return xp.power(x - mean, 3) / squares


# The units of the outputs.
FORMULAS = {softmax: 3, attention: 3, gated: 6, scanned: 4, gathered: 3, streamed: 3}


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_elements_are_one_unit_where_they_share_an_intermediate_number(formula) -> None:
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((3, 4)), "y": rng.standard_normal((4, 4))}
    names = formula.__code__.co_varnames[1 : formula.__code__.co_argcount]
    arguments = {name: XP.array(given[name]) for name in names}
    graph = record(formula, arguments)
    labels = components(graph, graph.outputs[0])
    assert len(np.unique(labels)) == FORMULAS[formula]
    exact = graph.read(XP, arguments)[0].data
    shared = 0
    for node in graph.nodes:
        moved = node.op in ("move", "broadcast", "pick", "array", "input", "number", "welford")
        for place in range(0 if moved else int(np.prod(node.shape))):
            step = np.zeros(int(np.prod(node.shape)))
            step[place] = 1e-3
            rule = Replacement(
                (node,), lambda xp, value, step=step: value + xp.array(step.reshape(value.shape))
            )
            after = graph.read(XP, arguments, {node: rule})[0].data
            changed = labels[after != exact]
            assert len(np.unique(changed)) <= 1, node
            shared += changed.size > 1
    assert shared or formula is gated


def test_what_all_rows_share_connects_none_of_them() -> None:
    rng = np.random.default_rng(0)
    arrays = {"x": XP.array(rng.standard_normal((5, 4))), "y": XP.array(np.eye(4))}
    graph = record(projected, arrays)
    labels = components(graph, graph.outputs[0])
    assert len(np.unique(labels)) == 5
    assert (labels == labels[:, :1]).all()


def test_components_of_the_same_values_are_one() -> None:
    labels = np.array([0, 1, 0, 1, 4, 4, 6])
    exact = np.array([1.0, -2.0, 3.0, -6.0, 1.5, 3.0, 7.0])
    places, owner = units(labels, exact)
    assert places.tolist() == [0, 2, 4, 5, 6]
    assert owner.tolist() == [0, 0, 1, 1, 2]
