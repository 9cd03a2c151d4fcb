"""The command line: one module for each command, and `shared` for what several of them need."""
