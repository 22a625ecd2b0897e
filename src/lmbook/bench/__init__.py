"""Benchmarks: each compares two ways in one run and prints a table and a JSON line."""

import json
from collections.abc import Sequence

__all__ = ["report"]


def report(rows: Sequence[dict], summary: dict) -> None:
    """Print rows as an aligned table, then ``summary`` as one line of JSON."""
    columns = list(rows[0])
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in [columns, *cells]) for i in range(len(columns))]
    for line in [columns, *cells]:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        )
    print(json.dumps(summary))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
