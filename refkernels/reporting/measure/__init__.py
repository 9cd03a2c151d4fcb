"""The report of a measurement: the terminal table, Markdown, one HTML page, plots."""
