"""Trainings whose layers hold tensors, or whose functions draw numbers, that no capture shows.

    python quiet_training.py FRAMEWORK

Leaves the folders `weighted` (losses with class weights), `drops_1` and `drops_2` (a dropout that
is not a layer, from two seeds) and `sure` (the same without it); prints {}.
"""

import sys

import four_frameworks
import numpy as np
from capture import Capture

RNG = np.random.default_rng(8)
X, W = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 5), (5, 3)))
V = RNG.standard_normal((3, 3)).astype(np.float32)
CLASSES = np.array([0, 2, 1, 1, 0, 2])
BITS = (RNG.random((6, 3)) < 0.4).astype(np.float32)
WEIGHTS = np.array([0.1, 2.0, 0.7], np.float32)
LOSSES = {"cross": "CrossEntropyLoss", "nll": "NLLLoss", "bce": "BCEWithLogitsLoss"}
FOLDERS = {"weighted": None, "drops_1": 1, "drops_2": 2, "sure": 0}


def weighted(self, x, classes, bits):
    y = self.first(x)
    return self.cross(y, classes) + self.nll(self.soft(y), classes) + self.bce(y, bits)


def trained(framework, name, seed):
    api = four_frameworks.of(framework)
    api.seed(seed or 3)

    def drops(self, x, classes, bits):
        y = self.first(x)
        return (self.last(api.dropout(y, 0.5) if seed else y) ** 2).mean()

    if seed is None:
        losses = {word: api.loss(kind, api.tensor(WEIGHTS)) for word, kind in LOSSES.items()}
        layers = {"soft": api.log_softmax(-1), **losses}
    else:
        layers = {"last": api.linear(3, 3)}
    forward = weighted if seed is None else drops
    model = four_frameworks.model(api, forward, first=api.linear(5, 3), **layers)
    api.set(model.first, W, V[0])
    if seed is not None:
        api.set(model.last, V.T.copy(), V[1])
    rate = {"learning_rate" if framework in ("paddle", "mindspore") else "lr": 0.1}
    word = "parameters" if framework == "paddle" else "params"
    optimizer = api.optim.SGD(**rate, **{word: api.free(model)})
    step = api.step(model, optimizer, lambda *batch: model(*batch))
    classes = CLASSES.astype(np.int32) if framework == "mindspore" else CLASSES
    batch = api.tensor(X), api.tensor(classes), api.tensor(BITS)
    with Capture(name, model, optimizer, steps=[0, 1]) as capture:
        for _ in range(2):
            capture.step(step(*batch), batch=[X, CLASSES, BITS])


if __name__ == "__main__":
    for name, seed in FOLDERS.items():
        trained(sys.argv[1], name, seed)
    print("{}")
