"""The machinery that all oracles of functions share: it makes an op from one real function.

`function` describes the function. `oracle` certifies its values, by its kernels and its formula,
and its gradients, `bounds` holds the library limit and the bounds of forms, `running` reads a form
for its bound, `plain` computes in the working precision, `solution` joins an answer with its bound
and condition numbers, `cases` holds the regimes that every function needs, and `ops` makes the `Op`
records of a family. No module here knows the function that it serves.
"""
