"""Compare the outputs of two executions of a page: words exactly, numbers nearly.

Floating-point results differ in their last digits between processors and releases, so a
number with a decimal point may differ by a relative 1e-3, an absolute 1e-4, or one unit
of the last place printed when at least two places are, or when it is a percentage.
Other integers, words and shapes must be the same, save where a view keeps a measurement
as whole percents or thousandths: one of those may differ by one, since the number may lie
between two. Of the nearest others that a view lists, one in a thousand may be another: two
may be equally near but for rounding. What a figure shows may differ by a twentieth of an
axis, of the range of colours or of a limit: as much as a training repeated elsewhere may
move it.
"""

import json
import math
import re
from collections.abc import Iterator
from itertools import takewhile

import numpy as np

RELATIVE, ABSOLUTE = 1e-3, 1e-4
VIEW = "application/vnd.lmcourse.view+json"
FIGURE = "application/vnd.lmcourse.figure+json"
FIGURE_TOLERANCE = 0.05
VIEW_ABSOLUTE = 1.01e-3  # one unit of the third decimal, to which views are rounded
# Lists of a view whose whole numbers are measurements, rounded: shares, cosines, places.
_ROUNDED = re.compile(r"\.(?:weights|untrained|support|planes|looks|probs|lists)\[")
# Lists of a view that name the nearest others of each text, and the share that may differ.
_NEAREST = re.compile(r"\.near$")
NEAREST_THAT_DIFFER = 1e-3
COMPARED_TYPES = ("text/plain", "application/papermill.record/text/plain", VIEW, FIGURE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?!\w)")
_PERCENT = re.compile(r"\s?%")


def strip_outputs(outputs: list) -> list[dict]:
    """Keep what a reference compares: standard output, plain text, view data, errors.

    Images, HTML and standard error are left out; they are other tests' business.
    """
    compared: list[dict] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream" and output["name"] == "stdout":
            if compared and compared[-1]["output_type"] == "stream":
                compared[-1]["text"] += output["text"]
            else:
                compared.append(
                    {"output_type": kind, "name": "stdout", "text": output["text"]}
                )
        elif kind == "error":
            error = {"ename": output["ename"], "evalue": output["evalue"]}
            compared.append({"output_type": kind, **error, "traceback": []})
        elif "data" in output:
            data = {
                key: output["data"][key] for key in COMPARED_TYPES if key in output["data"]
            }
            more = {"output_type": "display_data", "metadata": {}, "data": data}
            compared += [more] if data else []
    return compared


def difference(reference: list, test: list) -> str:
    """Return where two lists of outputs differ, in words; empty if they agree."""
    return next(_differences(strip_outputs(reference), strip_outputs(test), "outputs"), "")


def _differences(old: object, new: object, where: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() != new.keys():
            yield f"{where}: keys {sorted(old)} in the reference, {sorted(new)} now"
            return
        for key in old:
            yield from _differences(old[key], new[key], f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} items in the reference, {len(new)} now"
            return
        if VIEW in where and _NEAREST.search(where) and _are_nearly_the_same(old, new):
            return
        for i, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(*pair, f"{where}[{i}]")
    elif not _same_value(old, new, where):
        yield f"{where}: {_brief(old, new)} became {_brief(new, old)}"


def _are_nearly_the_same(old: list, new: list) -> bool:
    """Return whether nested lists of whole numbers differ in few places, or in none."""
    try:
        before, after = np.array(old), np.array(new)
    except ValueError:  # rows of several lengths
        return False
    if before.shape != after.shape or {before.dtype.kind, after.dtype.kind} != {"i"}:
        return False
    return (before != after).mean() <= NEAREST_THAT_DIFFER


def _same_value(old: object, new: object, where: str) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return _same_text(old, new)
    kinds = {type(old), type(new)}
    if float in kinds and kinds <= {int, float}:
        near = (FIGURE_TOLERANCE,) * 2 if FIGURE in where else (RELATIVE, VIEW_ABSOLUTE)
        return math.isclose(old, new, rel_tol=near[0], abs_tol=near[1]) or (
            math.isnan(old) and math.isnan(new)
        )
    if kinds == {int} and VIEW in where and _ROUNDED.search(where):
        return abs(old - new) <= 1
    return len(kinds) == 1 and old == new


def _same_text(old: str, new: str) -> bool:
    """Compare word by word; runs of spaces are one, since a sign shifts a table."""
    words = [re.sub(r"[ \t]+", " ", _NUMBER.sub("\0", text)) for text in (old, new)]
    if re.sub(r" ?\0", "\0", words[0]) != re.sub(r" ?\0", "\0", words[1]):
        return False
    pairs = zip(_NUMBER.finditer(old), _NUMBER.finditer(new), strict=True)
    return all(
        _same_number(left[0], right[0], bool(_PERCENT.match(old, left.end())))
        for left, right in pairs
    )


def _same_number(old: str, new: str, is_percentage: bool) -> bool:
    if old == new:
        return True
    point_or_exponent = re.compile(r"[.eE]")
    if not is_percentage and not (
        point_or_exponent.search(old) and point_or_exponent.search(new)
    ):
        return False
    mantissa, _, exponent = old.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    measured = decimals >= 2 or is_percentage
    unit = 10.0 ** (int(exponent or 0) - decimals) if measured else 0.0
    tolerance = max(ABSOLUTE, 1.01 * unit)
    return math.isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=tolerance)


def _brief(value: object, other: object) -> str:
    """Write a value, or of a long text the part where it begins to differ from another."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= 600:
        return text
    letters = zip(text, json.dumps(other, ensure_ascii=False), strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
    start = max(0, alike - 100)
    before, after = "…" if start else "", "…" if len(text) > start + 500 else ""
    return f"{before}{text[start : start + 500]}{after}"
