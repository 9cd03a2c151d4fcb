"""Runs: work that asks frameworks for hours, can be stopped and goes on where it was.

measurement    cases -> oracle, cases -> frameworks -> ULP -> records
sweeps         every bit pattern of a function of one number, or a search among them
"""

__kernels_of__ = ("metrology",)
