"""`python -m refkernels` and the console script."""


def main() -> None:
    """Run the command line."""
    from refkernels.cli import app

    app()


if __name__ == "__main__":
    main()
