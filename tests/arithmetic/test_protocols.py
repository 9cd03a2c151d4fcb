"""Lists and objects with a protocol become arrays; no object is read item by item."""

import array
from typing import Any

import numpy as np
import pytest

from refkernels.arithmetic.arrays import as_float_array, as_whole_numbers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.protocols import read


class Long:
    """A sequence of a billion items."""

    reads = 0

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: int) -> float:
        Long.reads += 1
        return 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: as_float_array(Long(), "x"),
        lambda: as_float_array([Long()], "x"),
        lambda: as_whole_numbers(Long(), "step"),
        lambda: Enclosure(Long()),
        lambda: Enclosure(1.0, radius=[Long()]),
        lambda: Enclosure([1.0]).reshape(Long()),
        lambda: Enclosure([1.0])[Long()],
        lambda: Enclosure([1.0])[[Long()]],
    ],
)
def test_a_sequence_is_not_asked_for_its_items(call: Any) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)):
        call()
    assert Long.reads == 0


def test_an_object_with_an_array_protocol_is_read() -> None:
    for value in (array.array("d", [1.0, 2.0]), memoryview(np.array([1.0, 2.0]))):
        assert np.array_equal(read(value), [1.0, 2.0])  # type: ignore[arg-type]
    assert read([1.0, 2.0]) is None
    assert read(object()) is None
    assert np.array_equal(as_whole_numbers(range(3), "step"), [0, 1, 2])


def test_an_object_that_refuses_says_why() -> None:
    class Lazy:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("Select CPU operator[Softmax] fail!\nmore lines")

    class DynamicTracer(Lazy):
        pass

    said = r"x is a Lazy, which gives no array of numbers: Select CPU operator\[Softmax\] fail!$"
    with pytest.raises(TypeError, match=said):
        as_float_array(Lazy(), "x")
    with pytest.raises(TypeError, match=r"call this outside jax\.jit"):
        as_float_array(DynamicTracer(), "x")


def test_a_list_in_an_enclosure_is_not_rounded_in_silence() -> None:
    with pytest.raises(ValueError, match="float64 does not hold"):
        Enclosure([2**53 + 1, 0.5])


def test_an_enclosure_says_what_is_no_index_or_shape_of_it() -> None:
    enclosure = Enclosure([1.0, 2.0, np.inf], radius=[0.5, 0.0, 0.0])
    with pytest.raises(IndexError, match=r"3 is not an index of an Enclosure of shape \(3,\)"):
        enclosure[3]
    with pytest.raises(ValueError, match="has no shape"):
        enclosure.reshape(2, 2)
    with pytest.raises(ValueError, match="one for each element"):
        enclosure.replace(np.array([3]), Enclosure([1.0]))
    with pytest.raises(ValueError, match="no single finite element"):
        enclosure.lower_upper(2)
    with pytest.raises(TypeError, match="must be an integer or a Fraction"):
        enclosure.contains(0, 1.0)  # type: ignore[arg-type]
    assert len(list(enclosure)) == 3
    with pytest.raises(TypeError, match="no length"):
        len(Enclosure(1.0))
