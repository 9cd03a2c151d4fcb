"""Records as they are written and read: words, schema, encoding, and the journal of a run."""
