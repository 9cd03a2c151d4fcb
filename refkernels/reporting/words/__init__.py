"""The words of every page: verdicts, causes, models, numbers, and text of others."""
