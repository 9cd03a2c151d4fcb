"""Is it the same training run? Captured runs (`refkernels.capture`), read and judged."""
