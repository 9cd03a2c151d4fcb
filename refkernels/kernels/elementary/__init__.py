"""exp, log, erf and functions made of them: the float64 tier, and double-doubles with a radius."""
