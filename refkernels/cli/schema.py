"""`refkernels schema`: the form of a record, for programs."""

import typer


def schema() -> None:
    """Print the JSON Schema of a record. That is a line of records.jsonl or sweeps.jsonl."""
    from refkernels.records import schema

    typer.echo(schema.TEXT, nl=False)
