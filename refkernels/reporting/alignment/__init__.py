"""An alignment of training runs in words: Markdown in two languages, from its record."""
