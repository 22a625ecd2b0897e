"""The ES modules of ``static/play`` as classic scripts, which pages opened as files load.

Browsers load no ES module from a file. A module keeps to two forms, at the beginning of a
line: ``import { a, b } from "./other.js";`` and ``export`` before a function, a class or a
const. Then it becomes a script by a few replacements; `static/modules.js` runs it. What the
site serves, terser has made short: the readable form is this repository's.
"""

import re
from pathlib import Path

from lmcourse.views import notebook

PLAY = Path(__file__).parents[1] / "static" / "play"
IN_NOTEBOOKS = ("dom.js", "poems.js", "poems.css")  # which the package has, therefore
IMPORT = re.compile(r'^import (\{[^}]+\}) from "\./([\w-]+\.js)";', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)


def files(suffix: str) -> dict[str, Path]:
    """Return all modules, or their style sheets, by name."""
    package = Path(notebook.__file__).parent / "static"
    found = [*PLAY.iterdir(), *(package / name for name in IN_NOTEBOOKS)]
    return {path.name: path for path in sorted(found) if path.suffix == suffix}


def order(name: str) -> list[str]:
    """Return all that a module needs, and itself last."""
    needs = [found[2] for found in IMPORT.finditer(files(".js")[name].read_text("utf-8"))]
    return list(dict.fromkeys([*(other for need in needs for other in order(need)), name]))


def script(name: str) -> str:
    """Return a module as a classic script, line for line."""
    text = files(".js")[name].read_text("utf-8")
    exported = ", ".join(found[2] for found in EXPORT.finditer(text))
    body = EXPORT.sub(r"\1 \2", IMPORT.sub(r'const \1 = need("\2");', text)).rstrip()
    return (
        f'lmcourse.define("{name}", function (need) {{ "use strict"; '
        f"{body}\nreturn {{ {exported} }};\n}});\n"
    )
