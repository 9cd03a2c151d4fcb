"""What a caller may pass becomes an array without reading item by item; the rest is refused."""

import array
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic.arrays import as_float_array, as_whole_numbers, distinct, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.protocols import read
from refkernels.arithmetic.scalars import as_count, as_real

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_without_a_copy(dtype: Any) -> None:
    array = np.ones((2, 3), dtype).T
    assert as_float_array(array, "x") is array
    assert as_float_array(dtype(1.5), "x").dtype == dtype
    wide = to_float64(array)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, np.ones((3, 2)))


class Speaks:
    def __init__(self, array: np.ndarray) -> None:
        self._array = array


class SpeaksArray(Speaks):
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._array


class SpeaksDLPack(Speaks):
    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("kind", [SpeaksArray, SpeaksDLPack])
def test_other_libraries_arrays_are_taken(kind: type) -> None:
    source = np.arange(3, dtype=np.float32)
    array = as_float_array(kind(source), "x")
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, source)


def test_foreign_byte_order_is_converted() -> None:
    swapped = np.array([1.0, 2.0], dtype=">f4")
    array = as_float_array(swapped, "x")
    assert array.dtype.isnative
    assert array.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "value",
    [
        np.arange(3),
        np.array([True]),
        np.array([1j]),
        np.array([None]),
        np.array(["1.0"]),
        "1.0",
        None,
        pytest.param(object(), id="an object"),
        [1j],
        {"x": 1.0},
        np.longdouble(1),
        np.array([1.0], dtype=ml_dtypes.float8_e4m3fn),
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    ],
    ids=repr,
)
def test_anything_but_a_float_array_is_a_type_error_with_the_name(value: Any) -> None:
    with pytest.raises(TypeError, match="weight"):
        as_float_array(value, "weight")


@pytest.mark.parametrize(
    ("bits", "dtype"),
    [(0x7D01, np.float16), (0x7FA1, ml_dtypes.bfloat16), (0x7FA00001, np.float32)],
)
def test_signalling_nans_are_widened_in_silence(bits: int, dtype: Any) -> None:
    kind = np.dtype(dtype)
    array = np.array([bits], f"u{kind.itemsize}").view(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(to_float64(array)).all()


def test_a_matrix_is_taken_as_the_plain_array_it_holds() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix([[1.0, 2.0]])
    assert type(as_float_array(matrix, "x")) is np.ndarray


@pytest.mark.parametrize(
    "value",
    [
        [2**53 + 1], [2**53 + 1, 0.5], [[0.5], [-(2**60) - 1]], [np.int64(2**53 + 1)], 10**400,
        [10**400, 1.0], 2**70 + 1, [[1.0], [1.0, 2.0]], [1.0, [2.0]], np.ones((1,) * 33),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_what_would_be_rounded_or_has_no_shape_is_a_value_error_with_the_name(value: Any) -> None:
    with pytest.raises(ValueError, match="weight"):
        as_float_array(value, "weight")


@pytest.mark.parametrize(
    "value",
    [
        [True, 1.0], [np.True_], [np.arange(2), [0.5, 0.5]], [None, 1.0], ["1.0"], [b"1", 2.0],
        [np.ma.masked_array([1.0, 2.0], [True, False])], [np.ma.masked, 1.0], Enclosure(1.0),
        [Enclosure(1.0)], (Enclosure(1.0), Enclosure([2.0])), [np.longdouble(1), 1.0],
    ],
    ids=repr,
)  # fmt: skip
def test_lists_hold_real_numbers_and_float_arrays_only(value: Any) -> None:
    with pytest.raises(TypeError, match="weight"):
        as_float_array(value, "weight")


@given(st.recursive(st.floats() | st.integers(-(2**53), 2**53), st.lists, max_leaves=12))
def test_a_list_keeps_every_number_it_holds(value: Any) -> None:
    def numbers(part: Any) -> list[float]:
        return [n for each in part for n in numbers(each)] if isinstance(part, list) else [part]

    try:
        array = as_float_array(value, "x")
    except ValueError as refusal:
        assert "x" in str(refusal)  # noqa: PT017
        return
    assert array.dtype == np.float64
    kept = zip(array.reshape(-1).tolist(), numbers(value), strict=True)
    assert all(mine == number or number != number for mine, number in kept)


def test_lists_of_several_dtypes_become_float64_without_rounding() -> None:
    mixed = [ml_dtypes.bfloat16(1.5), np.float16(0.1), np.float32(0.1), 0.1, 3, np.int8(4)]
    array = as_float_array(mixed, "x")
    assert array.dtype == np.float64
    assert array.tolist() == [float(value) for value in mixed]
    assert as_float_array([np.float32(0.1)] * 2, "x").dtype == np.float32


class Lazy:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Select CPU operator[Softmax] fail!\nmore lines")


@pytest.mark.parametrize("value", [1, 1e-5, np.float32(1e-5), np.int64(3), ml_dtypes.bfloat16(2)])
def test_real_numbers_become_the_float_that_equals_them(value: Any) -> None:
    number = as_real(value, "eps")
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("1e-5", TypeError), (True, TypeError), (np.True_, TypeError), (b"1", TypeError),
        (1e-5 + 0j, TypeError), (None, TypeError), (np.ones(1), TypeError), (Lazy(), TypeError),
        (10**400, ValueError), (2**53 + 1, ValueError), (np.longdouble(1) / 3, ValueError),
        (10**5000, ValueError),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_other_numbers_are_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="eps"):
        as_real(value, "eps")


@pytest.mark.parametrize("value", [3.0, "3", True, None, [3], 0, 2**63])
def test_counts_are_positive_integers(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="lanes"):
        as_count(value, "lanes")
    assert as_count(np.int32(3), "lanes") == 3


class Paddles:
    """Paddle's tensors give the bits of bfloat16 as uint16."""

    dtype = "paddle.bfloat16"

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, *arguments: Any, **named: Any) -> Any:
        return self.array


def test_bits_that_their_tensor_calls_bfloat16_are_bfloat16() -> None:
    x = np.array([[1.5, -0.0], [3.0, 2.0**-130]], ml_dtypes.bfloat16)
    read = as_float_array(Paddles(x.view(np.uint16)), "x")
    assert read.dtype == ml_dtypes.bfloat16
    assert read.tobytes() == x.tobytes()
    whole = Paddles(x.view(np.uint16))
    whole.dtype = "paddle.uint16"
    with pytest.raises(TypeError, match="x has dtype uint16"):
        as_float_array(whole, "x")


def test_arrays_of_cupy_are_copied_off_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class CupyArray:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("Implicit conversion to a NumPy array is not allowed")

        def get(self) -> Any:
            return np.float32([1.5, 2.5])

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=CupyArray))
    read = as_float_array(CupyArray(), "x")
    assert read.dtype == np.float32
    assert read.tolist() == [1.5, 2.5]


@given(st.lists(st.integers(0, 40) | st.integers(-(2**62), 2**62), max_size=60))
def test_distinct_indices_are_those_of_unique(drawn: list[int]) -> None:
    indices = np.array(drawn, np.intp)
    assert np.array_equal(distinct(indices), np.unique(indices))
    assert np.array_equal(indices, np.array(drawn, np.intp))


def test_an_object_with_an_array_protocol_is_read() -> None:
    for value in (array.array("d", [1.0, 2.0]), memoryview(np.array([1.0, 2.0]))):
        assert np.array_equal(read(value), [1.0, 2.0])  # type: ignore[arg-type]
    assert read([1.0, 2.0]) is None
    assert read(object()) is None
    assert np.array_equal(as_whole_numbers(range(3), "step"), [0, 1, 2])


def test_an_object_that_refuses_says_why() -> None:
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
