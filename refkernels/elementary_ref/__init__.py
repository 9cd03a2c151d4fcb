"""Exponentials, logarithms and what is made of them: certified values and gradients."""

from refkernels.op import Op

OPS: tuple[Op, ...] = ()
