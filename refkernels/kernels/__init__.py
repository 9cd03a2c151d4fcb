"""Hand-tuned Numba kernels for the oracles' fast tiers.

    elementary       exp, log, erf and functions made of them, in float64 and in double-double
    trigonometric    sin, cos, tan and their inverses, with the reduction modulo pi/2
    products         dot products: float64 with a bound, slices, double-doubles, integers
    rows             sums over rows, and LayerNorm's tiers, made of them

A kernel's error is derived in its module. Tables are data files, with the command that makes them.
"""
