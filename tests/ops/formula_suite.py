"""The ops that are formulas, and questions for them.

REFKERNELS_HUNT multiplies the questions of each kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formula_draws import draw, draw_params
from hunting import HUNT

from refkernels import registry
from refkernels.op import DTYPES, Direction, Op

OPS = {name: op for name, op in registry.ops().items() if op.define is not None}
DEFINED = [  # in formulas; those that are READ have no other oracle
    (name, direction)
    for name, op in OPS.items()
    for direction in ("forward", "backward")
    if direction == "forward" or op.definition.backward is not None
]
READ = [(name, direction) for name, direction in DEFINED if OPS[name].formulas is not None]


each_way = pytest.mark.parametrize(("name", "direction"), DEFINED, ids=map("-".join, DEFINED))
QUESTIONS = 4 * HUNT  # each of the four formats


def questions(
    name: str, direction: Direction, salt: int, dtypes: Any = DTYPES, layout: bool = True
) -> Any:
    """(dtype, inputs, params) of so many questions, the same on every run; a quarter has the
    default params. `layout`: whether params may move axes and change shapes."""
    seed = [salt, *name.encode(), len(direction)]
    rng, of_params = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
    for number in range(QUESTIONS):
        dtype = dtypes[number % len(dtypes)]
        inputs = draw(OPS[name], direction, rng, dtype)
        params = {}
        if OPS[name].params and of_params.random() < 0.75:
            params = draw_params(OPS[name], direction, of_params, inputs, layout)
        yield dtype, inputs, params


def first(op: Op, direction: Direction) -> Any:
    assert op.definition is not None
    return next(iter(op.definition.of(direction).forms.values()))
