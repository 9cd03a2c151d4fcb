"""`python -m refkernels` and the console script."""

import atexit
import gc


def main() -> None:
    """Run the command line."""
    from refkernels.cli import app

    # What a command reads in is no garbage: looking for it at Python's pace takes a fifth of it.
    gc.set_threshold(50_000)
    # The process is about to go: a last search for garbage would take as long as a small command.
    atexit.register(gc.freeze)
    app()


if __name__ == "__main__":
    main()
