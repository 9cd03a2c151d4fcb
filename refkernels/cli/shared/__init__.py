"""What several commands need: how options are read, and how answers are shown."""
