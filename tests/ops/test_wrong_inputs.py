"""An input that does not fit is refused in a sentence of this package's own; any layout fits.

Shapes: each input of each op is given others, the other inputs staying as they are: an axis more or
less, an axis longer, shorter, of length 1 or 0, no axis. What broadcasts may be answered.
Masks: no input of any kind may be a masked array.
"""

import functools
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hunting import one_way

import refkernels
from refkernels import registry
from refkernels.op import Direction

PACKAGE = Path(refkernels.__file__).parent
SMALLEST, LARGEST = 12, 5000  # elements of a case
Inputs = dict[str, np.ndarray[Any, Any]]


def other_shapes(shape: tuple[int, ...]) -> set[tuple[int, ...]]:
    shapes = {(), (0,), (1,), (2,), (2, 3), (1, *shape), (*shape, 1), (2, *shape)}
    shapes |= {shape[1:], shape[:-1], shape[::-1]}
    for k, length in enumerate(shape):
        shapes |= {(*shape[:k], n, *shape[k + 1 :]) for n in (length - 1, length + 1, 0, 1)}
    return shapes - {shape}


@functools.cache
def questions(name: str, direction: Direction) -> list[tuple[Inputs, dict[str, Any]]]:
    """The op's smallest case for each choice of inputs."""
    op = registry.get(name)
    chosen: dict[frozenset[str], tuple[int, Inputs, dict[str, Any]]] = {}
    for case in op.cases():
        dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
        inputs, params = case.build(dtype)
        if direction == "forward":
            inputs = {name: array for name, array in inputs.items() if name != op.cotangent}
        size = sum(array.size for array in inputs.values())
        usual = SMALLEST <= size <= LARGEST and all(array.size for array in inputs.values())
        if direction in case.directions and usual:
            entry = size, inputs, params
            chosen[frozenset(inputs)] = min(
                entry, chosen.get(frozenset(inputs), entry), key=lambda one: one[0]
            )
    return [(inputs, params) for _, inputs, params in chosen.values()]


WAYS = [(name, direction) for name, op in registry.ops().items() for direction in op.directions]
one_pass_of_each = pytest.mark.parametrize(("name", "direction"), one_way(WAYS))


@one_pass_of_each
def test_shapes_that_do_not_fit_are_refused_in_a_sentence(name: str, direction: Direction) -> None:
    op, asked = registry.get(name), questions(name, direction)
    assert asked
    for inputs, params in asked:
        for key, array in inputs.items():
            for shape in sorted(other_shapes(array.shape)):
                wrong = {**inputs, key: np.resize(array, shape).astype(array.dtype)}
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        op.evaluate(direction, wrong, params)
                except (TypeError, ValueError) as error:
                    file = traceback.extract_tb(error.__traceback__)[-1].filename
                    said = f"{direction}, {key} of shape {shape}: {type(error).__name__}: {error}"
                    assert Path(file).is_relative_to(PACKAGE), said


@one_pass_of_each
def test_a_mask_is_refused_and_never_dropped(name: str, direction: Direction) -> None:
    for inputs, params in questions(name, direction):
        for key, array in inputs.items():
            masked = np.ma.masked_array(array, mask=np.ones(array.shape, bool))
            with pytest.raises(TypeError, match=rf"^{key} .*masked"):
                registry.get(name).evaluate(direction, {**inputs, key: masked}, params)


@one_pass_of_each
def test_views_and_read_only_arrays_have_the_same_answer(name: str, direction: Direction) -> None:
    op, compared = registry.get(name), 0
    for inputs, params in questions(name, direction):
        turned = {key: np.asarray(np.flip(array)).copy() for key, array in inputs.items()}
        views = {key: np.asarray(np.flip(array)) for key, array in turned.items()}
        for view in views.values():
            view.setflags(write=False)
        whole, answer = (op.evaluate(direction, arrays, params) for arrays in (inputs, views))
        for output, enclosure in whole.items():
            for part in ("hi", "lo", "radius"):
                same = getattr(answer[output], part), getattr(enclosure, part)
                np.testing.assert_array_equal(*same)
            compared += enclosure.size
    assert compared
