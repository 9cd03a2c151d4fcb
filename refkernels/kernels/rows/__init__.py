"""Sums over rows, and the first tier of LayerNorm, in float64."""
