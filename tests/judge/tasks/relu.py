"""Only a comparison."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(16, 16384)]


def get_init_inputs():
    return []
