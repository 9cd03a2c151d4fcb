"""The comparison of two runs: the terminal table, Markdown, one HTML page."""
