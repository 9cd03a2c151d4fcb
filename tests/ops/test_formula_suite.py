"""The suite's questions reach what they are about."""

from __future__ import annotations

from formula_suite import DEFINED, OPS, questions


def test_every_number_that_is_a_param_is_asked_with_other_values() -> None:
    others = {
        (name, param)
        for name, direction in DEFINED
        for salt in (1, 2, 3, 5)
        for _, _, params in questions(name, direction, salt)
        for param, value in params.items()
        if value != OPS[name].params[param]
    }
    numbers = {
        (name, param)
        for name, op in OPS.items()
        for param, default in op.params.items()
        if isinstance(default, float) and param != "norm_type"  # 2 or inf
    }
    assert numbers <= others
    assert len({param for _, param in others - numbers}) > 10  # reduction, axis, training, ...
