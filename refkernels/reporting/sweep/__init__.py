"""The report of sweeps: a table, two pages, and plots along the number line."""
