"""Floating-point arithmetic with proven errors. This room knows no op and imports nothing of ours.

From the bottom up: `mode` (round to nearest, subnormals kept), `jit`, `fma` and `eft` (error-free
transformations), `double_double`, `summation`, `formats` (what a float32 or bfloat16 is, and
correct rounding into it), `arrays` (what a caller may hand in; `protocols`, what gives an array;
`scalars`, single numbers), `blocks` (the pool of threads), `enclosure` (a value with its error
bound), `exact` (integers), `question` (how sharp an answer is wanted) and `ladder` (how every
oracle goes from tier to tier until it is answered).
"""
