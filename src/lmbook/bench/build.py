"""Where the time of the last ``make html`` went."""

import json

from lmbook.bench import report
from lmbook.execute.keys import ROOT, build_folder
from lmbook.execute.run import chapters, stored


def main() -> int:
    """Print seconds a chapter, when it was executed, and seconds a part of the build."""
    times = build_folder(ROOT) / "times.json"
    if not times.is_file():
        print(f"{times} is missing: run `make html` first")
        return 1
    found = {f"chapter {path.stem}": stored(path.stem) for path in chapters()}
    took = {name: note.metadata.lmbook.seconds for name, note in found.items() if note}
    parts = json.loads(times.read_text())
    rows = [{"part": name, "seconds": s} for name, s in (took | parts).items()]
    summary = {"chapters_s": sum(took.values()), "build_s": sum(parts.values())}
    report(rows, {"benchmark": "build", **summary})
    return 0
