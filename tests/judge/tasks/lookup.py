"""Rows of a table at drawn places, of numbers none; the neighbours read the row in front."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = nn.Embedding(rows, 8)

    def forward(self, places):
        return torch.relu(self.table(places))


ModelNew = Model


class Neighbours(Model):
    def forward(self, places):
        return super().forward((places - 1).clamp(min=0))


def get_inputs():
    return [torch.randint(0, 4096, (16, 32))]


def get_init_inputs():
    return [4096]
