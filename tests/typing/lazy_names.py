"""What a type checker must see through `import refkernels`; `make lint` checks this file strictly.

An `ignore` that is not needed is an error there, so each one states that the line is wrong.
"""

import numpy as np
from typing_extensions import assert_type

import refkernels as rk
from refkernels import layernorm_ref, matmul_ref, trig_ref

ones = np.ones((2, 3), np.float32)

assert_type(rk.layernorm_ref.forward(ones).y, rk.Enclosure)
assert_type(layernorm_ref.backward(ones, ones).dweight, rk.Enclosure)
assert_type(matmul_ref.forward(ones, ones.T), rk.Enclosure)
assert_type(matmul_ref.linear_backward(ones, ones, ones).dx, rk.Enclosure)
assert_type(trig_ref.sin(ones), rk.Enclosure)
assert_type(rk.elementary_ref.exp(ones), rk.Enclosure)
assert_type(rk.softmax_ref.log_softmax(ones), rk.Enclosure)
assert_type(rk.activation_ref.hardswish(ones), rk.Enclosure)
assert_type(rk.reduction_ref.sum(ones), rk.Enclosure)
assert_type(rk.loss_ref.mse(ones, ones), rk.Enclosure)
assert_type(rk.binary_ref.pow(ones, ones), rk.Enclosure)
assert_type(rk.convolution_ref.conv1d(ones, ones[None]), rk.Enclosure)
assert_type(rk.__version__, str)

wrong = (
    rk.no_such_thing,  # type: ignore[attr-defined]
    rk.layernorm_ref.forward(ones).z,  # type: ignore[attr-defined]
    rk.explain("sin", {}, {}).no_such_thing,  # type: ignore[attr-defined]
)
