"""What is written and read: its words, its schema, its encoding, and the journal of a run."""
