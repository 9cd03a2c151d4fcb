"""Sums over rows, and LayerNorm's tiers made of them: float64, double-double, integers."""
