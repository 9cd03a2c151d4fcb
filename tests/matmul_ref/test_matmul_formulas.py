"""The formula of a product is the product, in whatever shapes NumPy multiplies."""

import numpy as np
import pytest

import refkernels
from refkernels import registry

MATMUL = registry.get("matmul")
SHAPES = [
    ((60,), (60, 3)),
    ((4, 60), (60,)),
    ((60,), (60,)),
    ((2, 4, 60), (60, 3)),
    ((1, 4, 60), (3, 60, 2)),
    ((4, 60), (2, 60, 3)),
    ((2, 1, 4, 5), (3, 5, 2)),
    ((2, 3, 4, 5), (2, 1, 5, 2)),
    ((5, 1, 2, 3, 2), (1, 4, 2, 2, 3)),
    ((3,), (2, 3, 2)),
]
each = pytest.mark.parametrize(("shape_a", "shape_b"), SHAPES, ids=str)


def operands(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in (shape_a, shape_b))
    dc = rng.standard_normal(np.matmul(a, b).shape).astype(np.float32)
    return {"dc": dc, "a": a, "b": b}


@each
def test_an_element_is_that_of_its_cone(shape_a, shape_b):
    inputs, rng = operands(shape_a, shape_b), np.random.default_rng(1)
    compared = 0
    for direction in ("forward", "backward"):
        arrays = {name: inputs[name] for name in MATMUL.takes(direction)}
        exact = MATMUL.evaluate(direction, arrays, {})
        for name, enclosure in exact.items():
            place = tuple(int(rng.integers(n)) for n in enclosure.shape)
            dependencies = MATMUL.definition.dependencies(direction, name, place, arrays, {})
            alone = {key: np.zeros_like(array) for key, array in arrays.items()}
            for key, flat in dependencies.items():
                alone[key].reshape(-1)[flat] = arrays[key].reshape(-1)[flat]
            again = MATMUL.evaluate(direction, alone, {})[name]
            assert again.hi[place] == enclosure.hi[place]
            compared += 1
    assert compared == 3


@pytest.mark.parametrize("shapes", [((600,), (600, 3)), ((4, 600), (2, 600, 3))], ids=str)
def test_a_large_product_of_any_shape_is_explained(shapes):
    inputs = operands(*shapes)
    c = np.matmul(inputs["a"], inputs["b"]) * np.float32(1.5)
    explanation = refkernels.explain("matmul", {"a": inputs["a"], "b": inputs["b"]}, {"c": c})
    assert explanation.cause == "scale_factor"
    grad = np.asarray(MATMUL.evaluate("backward", inputs, {})["da"]) * 1.5
    explanation = refkernels.explain("matmul", inputs, {"da": grad.astype("f4")}, None, "backward")
    assert explanation.cause == "scale_factor"
