"""sin, cos, tan and their inverses: the float64 tier, and double-doubles with a radius."""
