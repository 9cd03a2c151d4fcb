"""A product with a function: two calls."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.rand(16, 16384)]


def get_init_inputs():
    return []
