"""A linear layer, whose weight and bias belong to the model; the new model names them otherwise,
the other one answers otherwise at the task's own size."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x):
        return self.layer(x)


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        layer = nn.Linear(features, outputs)
        self.w, self.b = layer.weight, layer.bias

    def forward(self, x):
        return torch.addmm(self.b, x, self.w.t())


class OtherAtItsOwnSize(ModelNew):
    def forward(self, x):
        y = super().forward(x)
        return y.flip(0) if x.shape == (64, 96) else y


def get_inputs():
    return [torch.rand(64, 96)]


def get_init_inputs():
    return [96, 80]
