"""`refkernels schema`: the form of a record, for programs."""

import typer


def schema() -> None:
    """Print the schema of a record, a line of records.jsonl or sweeps.jsonl, as JSON Schema."""
    from refkernels.records import schema

    typer.echo(schema.TEXT, nl=False)
