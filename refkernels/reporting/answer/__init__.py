"""The answer to paste: why these numbers differ, from the record of an explanation."""
