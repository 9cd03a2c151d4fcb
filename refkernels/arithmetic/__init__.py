"""Floating-point arithmetic with proven errors. It knows no op, and imports no other room.

From the bottom up: `mode` (round to nearest, subnormals kept), `compiler` (Numba, imported when a
kernel needs it), `jit`, `fma` and `eft` (error-free transformations; `transformations`, of arrays),
`double_double`, `formats` (what a float32 or bfloat16 is, and correct rounding into
it), `arrays` (the arrays that a caller may pass; `protocols`, how objects become arrays; `scalars`,
single numbers), `blocks` (the pool of threads), `enclosure` (a value with its error bound), `exact`
(integers), `question` (how sharp an answer is wanted) and `ladder` (how every oracle climbs from
tier to tier until its question is answered).
"""
