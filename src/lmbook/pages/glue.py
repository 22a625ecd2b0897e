"""The values that a page glued, for its text, its drawings and its notebook."""

import ast

import nbformat

GLUE = "application/papermill.record/text/plain"


def glued(executed: nbformat.NotebookNode) -> dict[str, str]:
    """Return the values that the page glued, name → repr."""
    found = {}
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name and GLUE in output.get("data", {}):
                found[name] = output["data"][GLUE]
    return found


def format_glue(values: dict[str, str], name: str, form: str) -> str:
    """Return a glued value as text, in a format such as ``".2f"`` or ``""``.

    Raises
    ------
    ValueError
        If there is none of this name, or it has no such format.
    """
    if name not in values:
        raise ValueError(f"nothing was glued under the name {name!r}")
    try:
        value = ast.literal_eval(values[name])
    except (ValueError, SyntaxError):
        value = values[name]
    try:
        return format(value, form)
    except (TypeError, ValueError):
        raise ValueError(f"{name!r} is {values[name]}: {form!r} wants a number") from None
