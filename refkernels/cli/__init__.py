"""The command line: one module a command, and `shared` for what several of them need."""
