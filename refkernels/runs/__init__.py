"""Runs: work that may take hours, can be stopped at any moment, and resumes where it stopped.

measurement    cases -> oracle, cases -> frameworks -> ULP -> records
sweeps         every bit pattern of a function of one number, or a search among them
"""

__kernels_of__ = ("metrology",)
