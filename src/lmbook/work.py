"""``python -m lmbook.work``: copy the book's notebooks to ``work``, where readers run them.

The site's build writes its notebooks anew; what a reader saves must outlast that. So a copy
is replaced by a newer one only while it is byte for byte as it was copied. One that was
saved since stays as it is, until its reader renames it. Git ignores the folder.
"""

import json
from pathlib import Path

from lmbook.execute.keys import ROOT, build_folder, hash_files
from lmbook.publish.addresses import FOLDER
from lmcourse.files import write_whole

COPIED = ".copied.json"  # name → hash of what was copied


def bring(notebooks: Path, work: Path) -> list[str]:
    """Copy the book's notebooks into a reader's folder, but never over a reader's own.

    One that the reader changed since it was copied stays as it is. The hash of each that is
    copied is noted in the file ``.copied.json`` of the reader's folder.

    Parameters
    ----------
    notebooks : Path
        The folder of the book's.
    work : Path
        The reader's folder, made if it is not there.

    Returns
    -------
    list of str
        Names of the files that stay as the reader saved them, though the book has newer
        ones.
    """
    work.mkdir(exist_ok=True)
    record = work / COPIED
    copied = read_record(record)
    newer = []
    for path in sorted(notebooks.glob("*.ipynb")):
        name, new = path.name, hash_files(path, notebooks)[path.name]
        theirs = hash_files(work / name, work).get(name, new)
        if theirs in (copied.get(name), new):
            write_whole(work / name, path.read_bytes())
            copied[name] = new
        elif copied.get(name) != new:
            newer.append(name)
    write_whole(record, json.dumps(copied).encode())
    return newer


def read_record(path: Path) -> dict[str, str]:
    """Return which notebooks were copied: name of the file → SHA-256 of what was copied.

    ``path`` : of the JSON file that says so (`bring`). Empty if it is damaged or not there:
    then a notebook that differs from the book's counts as the reader's own, and stays.
    """
    try:
        copied = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return copied if isinstance(copied, dict) else {}


if __name__ == "__main__":
    work = ROOT / "work"
    for name in bring(build_folder(ROOT) / "html" / FOLDER, work):
        print(f"{work / name} is kept as you saved it; rename it to have the newer one")
