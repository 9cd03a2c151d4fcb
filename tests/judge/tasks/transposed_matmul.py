"""The product of a transposed matrix and another."""

import torch
from torch import nn

M, K, N = 1024, 4096, 2048


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a.T, b)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.T @ b


def get_inputs():
    return [torch.rand(K, M), torch.rand(K, N)]


def get_init_inputs():
    return []
