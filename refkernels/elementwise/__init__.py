"""What all elementwise oracles share: one real function goes in (`function`), an op comes out.

`oracle` runs the tiers (float64, double-double, exact), `product` multiplies a cotangent by a
slope's enclosure, `exact` raises the precision until a question is decided, `bounds` holds the
library limit and the bounds of forms, `running` how a form is read for its bound, `plain` the
working precision, `cases` the regimes that every function needs, and `ops` makes the `Op` records
of a family. No file here knows which function it works for.
"""
