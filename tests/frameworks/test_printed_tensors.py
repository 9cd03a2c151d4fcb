"""What the installed frameworks print is read back: every number inside its interval."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from plain_interpreter import PlainInterpreter

from refkernels.printed import text, verdict
from refkernels.printed.digits import intervals

PROGRAM = """
import json
import numpy as np
x = np.array([[0.12345678, -2.5, 7.0], [3.0, 1e-3, 0.3333333]], np.float32)
for k, array in enumerate([x, x[:, 1:] * 1e-6, x * 1e5, np.rint(x), x[0, 0]]):
    print(json.dumps(np.asarray(array, np.float64).tolist()))
    print("----")
    print("x =", make(np.asarray(array)))
    print("----")
print("----")
print("x =", make(x))
print("y =", softmax(make(x)))
"""
MAKERS = {
    "numpy": "make = repr\ndef softmax(x):\n"
    "    e = np.exp(np.float32(globals()['x']))\n    return repr(e / e.sum(-1, keepdims=True))",
    "torch": "import torch\nmake = torch.tensor\nsoftmax = lambda x: torch.softmax(x, -1)",
    "paddle": "import paddle\nmake = paddle.to_tensor\n"
    "softmax = lambda x: paddle.nn.functional.softmax(x, -1)",
    "oneflow": "import oneflow\nmake = oneflow.tensor\nsoftmax = lambda x: oneflow.softmax(x, -1)",
    "mindspore": "import mindspore\nmake = lambda a: repr(mindspore.Tensor(a))\n"
    "softmax = lambda x: repr(mindspore.ops.softmax(mindspore.Tensor(globals()['x']), -1))",
}


@pytest.mark.parametrize("framework", MAKERS)
def test_the_intervals_of_a_printed_tensor_hold_its_values(
    framework: str, plain: Callable[[str], PlainInterpreter]
) -> None:
    printed = plain(framework).run(f"{MAKERS[framework]}\n{PROGRAM}")
    *parts, thread = printed.split("----\n")
    pairs = [part for part in parts if part.strip()]
    assert len(pairs) == 10
    for exact, printed in zip(pairs[::2], pairs[1::2], strict=True):
        (tensor,) = text.tensors(printed)
        array = np.array(json.loads(exact.strip().splitlines()[-1]))
        read = intervals(tensor)
        assert (tensor.name, tensor.framework, read.low.shape) == ("x", framework, array.shape)
        assert ((read.low <= array) & (array <= read.high)).all(), printed
    kernels = verdict.explain_printed("softmax", text.tensors(thread))["kernels"]
    assert {name: kernel["outputs"]["y"]["verdict"] for name, kernel in kernels.items()} == {
        framework: "within"
    }
