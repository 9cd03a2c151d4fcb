"""Other questions that a kernel may have answered, each a cause: see `hypothesis.Variant`."""
