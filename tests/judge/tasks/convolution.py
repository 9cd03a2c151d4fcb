"""A convolution of images, whose weight belongs to the model."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, features, taps):
        super().__init__()
        self.convolution = nn.Conv2d(channels, features, taps, stride=2, padding=1)

    def forward(self, x):
        return self.convolution(x)


def get_inputs():
    return [torch.rand(16, 3, 224, 224)]


def get_init_inputs():
    return [3, 64, 3]
