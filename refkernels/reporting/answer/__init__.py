"""The answer to paste: why these numbers differ, from an explanation as `to_dict` gives it."""
