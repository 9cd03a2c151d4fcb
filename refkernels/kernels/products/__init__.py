"""Dot products by the thousand: float64 with a bound, slices, double-doubles, integers."""
