"""The machinery that all elementwise oracles share: it makes an op from one real function.

`function` describes the function. `oracle` runs the tiers (float64, double-double, exact),
`product` multiplies a cotangent by a slope's enclosure, `exact` raises the precision until a
question is decided (in `balls`), `bounds` holds the library limit and the bounds of forms,
`running` reads a form for its bound, `plain` computes in the working precision, `solution` joins an
answer with its bound and condition numbers, `cases` holds the regimes that every function needs,
and `ops` makes the `Op` records of a family. No module here knows the function that it serves.
"""
