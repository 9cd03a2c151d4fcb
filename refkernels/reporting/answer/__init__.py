"""The answer to paste into a thread: why these numbers differ, from an explanation's record."""
