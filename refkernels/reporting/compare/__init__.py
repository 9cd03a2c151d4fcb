"""Two runs held against each other: the terminal table, Markdown, one HTML page."""
