"""A compiled model under the probe, with a chosen step: python graph_training.py FRAMEWORK."""

import json
import sys

import numpy as np
from capture import Capture

X = np.ones((4, 5), np.float32)


def oneflow_graph():
    import oneflow as flow

    model = flow.nn.Sequential(flow.nn.Linear(5, 3), flow.nn.GELU())
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    class Graph(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.model(x).mean()
            loss.backward()
            return loss

    graph = Graph()
    return model, optimizer, lambda: graph(flow.tensor(X))


def paddle_graph():
    import paddle

    model = paddle.nn.Sequential(paddle.nn.Linear(5, 3), paddle.nn.GELU())
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    compiled = paddle.jit.to_static(model)

    def step():
        loss = compiled(paddle.to_tensor(X)).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return compiled, optimizer, step


if __name__ == "__main__":
    model, optimizer, step = globals()[sys.argv[1] + "_graph"]()
    losses = []
    with Capture("graph", model, optimizer, steps=[0]) as capture:
        for _ in range(3):
            loss = step()
            capture.step(loss)
            losses.append(float(loss.numpy()))
    print(json.dumps(losses))
