"""The ops with tiers tuned by hand: every case is certified, the plain algorithm keeps to the bound
and the invariants, and no bit depends on the number of threads."""

import numpy as np
import pytest
from hunting import one_in
from numba_threads import each_number_of_threads
from underflow_attack import error_over_bound

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.op import DIRECTIONS, DTYPES

TUNED = [op for op in registry.ops().values() if op.formulas is None]
LARGE = 1 << 21  # elements, of which one format is enough
IN_FORMATS = [(op.name, DTYPES[(k + n) % 4]) for k, op in enumerate(TUNED) for n in range(4)]


def questions(op, dtype):
    """(case, direction, inputs, params) of the format."""
    for case in op.cases():
        if dtype not in case.dtypes:
            continue
        inputs, params = case.build(dtype)
        if dtype != "float32" and sum(array.size for array in inputs.values()) > LARGE:
            continue
        for direction in case.directions:
            arrays = {name: inputs[name] for name in op.takes(direction) if name in inputs}
            yield case, direction, arrays, params


@pytest.mark.parametrize(("name", "dtype"), one_in(4, IN_FORMATS))
def test_every_case_is_certified_and_the_plain_algorithm_is_right(name, dtype):
    op, format, compared = registry.get(name), formats.get(dtype), 0
    for case, direction, arrays, params in questions(op, dtype):
        exact = op.evaluate(direction, arrays, params, ("rounding", dtype))
        parts = (
            op.bound(direction, arrays, params, format),
            op.condition(direction, arrays, params),
            op.plain(direction, arrays, params, format),
        )
        assert all(set(part) == set(exact) == set(op.names(direction)) for part in parts)
        rounded = {}
        for output, enclosure in exact.items():
            rounded[output], certified = enclosure.round(dtype)
            assert certified.all(), (case.name, output)
            bound, condition, plain = (part[output] for part in parts)
            assert {part.shape for part in (bound, condition, plain)} == {enclosure.shape}
            assert plain.dtype == format.storage
            assert (np.isnan(bound) <= ~np.isfinite(enclosure.hi)).all()
            defined = np.isnan(condition) | (condition >= 0.0)
            assert defined.all(), case.name
            ratio = error_over_bound(plain, enclosure, bound)
            assert ratio <= 1.0 + 1e-9, (case.name, direction, output)
            compared += enclosure.size
        for invariant in op.invariants:
            if invariant.direction == direction:
                for answers in (rounded, parts[2]):
                    got = answers[invariant.output]
                    assert not invariant.violated(got, arrays, params).any(), invariant.statement
    assert compared > 1000


@pytest.mark.parametrize("op", [op for op in TUNED if op.function], ids=lambda op: op.name)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_bit_of_a_function_depends_on_the_number_of_threads(op, direction):
    x = np.random.default_rng(8).uniform(-20, 20, 70_000)
    answers = []
    for _ in each_number_of_threads():
        for inputs in (x, x.astype(np.float32)):
            arrays = dict.fromkeys(op.takes(direction), inputs)
            for certify in ("enclosure", ("rounding", "float32")):
                answers += op.evaluate(direction, arrays, {}, certify).values()
    assert len(answers) == 8
    for single, threaded in zip(answers[:4], answers[4:], strict=True):
        for part in ("hi", "lo", "radius", "scale"):
            np.testing.assert_array_equal(getattr(single, part), getattr(threaded, part))
