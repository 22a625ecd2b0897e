"""Benchmarks: each compares two ways in one run and prints a table and a JSON line."""

import json
from collections.abc import Sequence

import pandas as pd


def report(rows: Sequence[dict], summary: dict) -> None:
    """Print the results of a benchmark: a table, then one line of JSON.

    Parameters
    ----------
    rows : sequence of dict
        A row of the table for each way that was measured: name of a column → value. Each
        benchmark has columns of its own.
    summary : dict
        What is concluded, for programs; JSON can represent it.
    """
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))
    print(json.dumps(summary))
