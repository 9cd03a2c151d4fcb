"""What a caller may hand in, and what is refused in a sentence."""

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels.arithmetic.arrays import as_float_array, to_float64

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
    found = as_float_array(kind(source), "x")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, source)


def test_numbers_and_lists_become_float64() -> None:
    assert as_float_array(1.5, "x").dtype == np.float64
    assert as_float_array([1, 2], "x").dtype == np.float64
    assert as_float_array([], "x").dtype == np.float64
    assert as_float_array([[0.5], [1.0]], "x").shape == (2, 1)


def test_foreign_byte_order_is_turned() -> None:
    swapped = np.array([1.0, 2.0], dtype=">f4")
    found = as_float_array(swapped, "x")
    assert found.dtype.isnative
    assert found.tolist() == [1.0, 2.0]


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
def test_what_is_no_float_array_is_a_type_error_with_the_name(value: Any) -> None:
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
