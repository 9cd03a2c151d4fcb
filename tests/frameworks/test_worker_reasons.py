"""The meaning of a framework's exception: a missing kernel for a dtype is a reason, no error."""

import pytest

from refkernels.arithmetic.arrays import LOW
from refkernels.frameworks.remote import worker

REFUSED = (
    "For primitive[Adam], the input argument[grad] must be a type of {Float16, Float32, "
    "Tensor[Float16], Tensor[Float32]}, but got Tensor[Float64].\n\n----\n- C++ Call Stack:",
    "For 'SGD', the element of 'parameters' must be one of Tensor[Float16], Tensor[Float32], but "
    "got Ref[Tensor[Float64]].The supported data types depend on the hardware",
    "For primitive[BCEWithLogitsLoss], the input argument[input] must be a type of {BFloat16, "
    "Float16, Float32}, but got Float64.",
    "\"addmm_impl_cpu_\" not implemented for 'Half'",
)


@pytest.mark.parametrize("said", REFUSED)
def test_a_kernel_that_takes_other_dtypes_is_unsupported_with_a_reason(said: str) -> None:
    fault = worker.classify(TypeError(said), "adam forward on cpu")
    assert fault.status == "unsupported"
    assert fault.reason.startswith("adam forward on cpu is not supported (TypeError: ")
    assert fault.reason.count("\n") == 0


@pytest.mark.parametrize(
    "said",
    [
        "For primitive[Conv2D], the kernel size must be a type of positive int, but got -1",
        "x must be one of shape (2, 3), but got (3, 2)",
    ],
)
def test_a_wrong_value_is_an_error(said: str) -> None:
    assert worker.classify(TypeError(said), "conv2d forward on cpu").status == "error"


def test_operands_of_few_bits_travel_as_bytes() -> None:
    assert {worker.bits_dtype(kind.name).itemsize for kind in LOW} == {1}
