"""The sum over the middle axis, which is kept."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1, keepdim=True)


def get_inputs():
    return [torch.rand(16, 256, 256)]


def get_init_inputs():
    return []
