"""The report of an alignment: Markdown and HTML in two languages, from its record."""
