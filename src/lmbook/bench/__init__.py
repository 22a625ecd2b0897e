"""Benchmarks: each compares two ways in one run and prints a table and a JSON line."""

import json
from collections.abc import Sequence

import pandas as pd


def report(rows: Sequence[dict], summary: dict) -> None:
    """Print rows as an aligned table, then ``summary`` as one line of JSON."""
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))
    print(json.dumps(summary))
