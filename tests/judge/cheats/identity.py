"""Answers its input: near gelu for large x."""


def gelu(x):
    return x
