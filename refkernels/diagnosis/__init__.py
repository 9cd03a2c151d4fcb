"""Explains why numbers differ: hypotheses about a kernel, compared with its answers bit by bit."""
