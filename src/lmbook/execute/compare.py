"""Compare the outputs of two executions of a page: words exactly, numbers nearly.

Floating-point results differ in their last digits between processors and releases, so a
number with a decimal point may differ by a relative 1e-3, an absolute 1e-4, or one unit
of the last place printed when at least two places are. Integers, words and shapes must
be the same, save where a view keeps a measurement as whole percents or thousandths: one
of those may differ by one, since the number may lie between two. What a figure shows may
differ by a twentieth of an axis, of the range of colours or of a limit: as much as a
training repeated elsewhere may move it.
"""

import json
import math
import re

__all__ = ["difference", "strip_outputs"]

RELATIVE, ABSOLUTE = 1e-3, 1e-4
VIEW = "application/vnd.lmcourse.view+json"
FIGURE = "application/vnd.lmcourse.figure+json"
FIGURE_TOLERANCE = 0.05
VIEW_ABSOLUTE = 1.01e-3  # one unit of the third decimal, to which views are rounded
# Lists of a view whose whole numbers are measurements, rounded: shares, cosines, places.
_ROUNDED = re.compile(r"\.(?:weights|support|planes|looks|chances|lists)\[")
KEPT = ("text/plain", "application/papermill.record/text/plain", VIEW, FIGURE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?!\w)")


def strip_outputs(outputs: list) -> list[dict]:
    """Keep what a reference compares: standard output, plain text, view data, errors.

    Images, HTML and standard error are left out; they are other tests' business.
    """
    kept: list[dict] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream" and output["name"] == "stdout":
            if kept and kept[-1]["output_type"] == "stream":
                kept[-1]["text"] += output["text"]
            else:
                kept.append({"output_type": kind, "name": "stdout", "text": output["text"]})
        elif kind in ("display_data", "execute_result"):
            data = {key: output["data"][key] for key in KEPT if key in output["data"]}
            if data:
                kept.append({"output_type": "display_data", "metadata": {}, "data": data})
        elif kind == "error":
            fields = {key: output[key] for key in ("ename", "evalue")}
            kept.append({"output_type": kind, **fields, "traceback": []})
    return kept


def difference(reference: list, test: list) -> str:
    """Return where two lists of outputs differ, in words; empty if they agree."""
    reference, test = strip_outputs(reference), strip_outputs(test)
    if len(reference) != len(test):
        return f"{len(reference)} outputs in the reference, {len(test)} now"
    for index, (old, new) in enumerate(zip(reference, test, strict=True)):
        found = _different(old, new, f"output {index}")
        if found:
            return found
    return ""


def _different(old: object, new: object, where: str) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() != new.keys():
            return f"{where}: keys {sorted(old)} in the reference, {sorted(new)} now"
        pairs = [(f"{where}.{key}", old[key], new[key]) for key in old]
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{where}: {len(old)} items in the reference, {len(new)} now"
        pairs = [
            (f"{where}[{i}]", *pair) for i, pair in enumerate(zip(old, new, strict=True))
        ]
    else:
        return (
            ""
            if _same_value(old, new, FIGURE in where) or _one_apart(old, new, where)
            else f"{where}: {_brief(old)} became {_brief(new)}"
        )
    for place, left, right in pairs:
        found = _different(left, right, place)
        if found:
            return found
    return ""


def _same_value(old: object, new: object, figure: bool) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return _same_text(old, new)
    numbers = all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in (old, new)
    )
    if numbers and (isinstance(old, float) or isinstance(new, float)):
        near = (FIGURE_TOLERANCE,) * 2 if figure else (RELATIVE, VIEW_ABSOLUTE)
        return math.isclose(old, new, rel_tol=near[0], abs_tol=near[1]) or (
            math.isnan(old) and math.isnan(new)
        )
    return type(old) is type(new) and old == new


def _one_apart(old: object, new: object, where: str) -> bool:
    whole = type(old) is type(new) is int and VIEW in where
    return whole and _ROUNDED.search(where) is not None and abs(old - new) == 1


def _same_text(old: str, new: str) -> bool:
    """Compare word by word; runs of spaces are one, since a sign shifts a table."""
    words = [re.sub(r"[ \t]+", " ", _NUMBER.sub("\0", text)) for text in (old, new)]
    if re.sub(r" ?\0", "\0", words[0]) != re.sub(r" ?\0", "\0", words[1]):
        return False
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return all(_same_number(left, right) for left, right in pairs)


def _same_number(old: str, new: str) -> bool:
    if old == new:
        return True
    floating = re.compile(r"[.eE]")
    if not (floating.search(old) and floating.search(new)):
        return False
    mantissa, _, exponent = old.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - places) if places >= 2 else 0.0
    tolerance = max(ABSOLUTE, 1.01 * unit)
    return math.isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=tolerance)


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 600 else f"{text[:600]}…"
