"""A MindSpore training whose input is no argument of the function that is differentiated."""

import json

import mindspore as ms
import numpy as np
from capture import Capture
from mindspore import Tensor, nn

ms.set_device("CPU")
ms.set_context(mode=ms.PYNATIVE_MODE)


def train(folder):
    ms.set_seed(1)
    model, rng = nn.Dense(5, 3), np.random.default_rng(0)
    x = Tensor(rng.standard_normal((4, 5)).astype(np.float32))
    optimizer = nn.Momentum(model.trainable_params(), 0.01, 0.9)
    gradients = ms.value_and_grad(lambda: (model(x) ** 2).mean(), None, optimizer.parameters)
    losses = []
    with Capture(folder, model, optimizer, steps=[1]) as capture:
        for _ in range(3):
            loss, grads = gradients()
            optimizer(grads)
            capture.step(loss=loss, batch=x)
            losses.append(float(loss.asnumpy()).hex())
    return losses


if __name__ == "__main__":
    print(json.dumps(train("closed")))
