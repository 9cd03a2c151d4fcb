"""The words of every page: verdicts, causes, models, numbers, and foreign text."""
