"""``python -m lmbook.new_chapter NAME``: begin a chapter.

Writes a page that builds, with a figure, a proof and a task, each in the module where it
belongs, and adds it to the last numbered part of ``_toc.yml``. Nothing that exists is
replaced.
"""

import argparse
import re
import sys
from pathlib import Path

from lmbook.execute.keys import ROOT
from lmbook.pages.course import CourseError, numbered_pages, pages_in_contents
from lmcourse.files import write_whole

TEMPLATES = Path(__file__).parent / "templates" / "new-chapter"
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def files(name: str, root: Path) -> dict[Path, str]:
    """Return the files of a new chapter, path → text, made from templates.

    These are its page, the modules of its figures, its exercises and its proofs, with the
    ``__init__.py`` of their package, and wrong answers for the tests of its exercises.

    ``name`` : str, such as "my-chapter"; ``root`` : Path, the repository.
    """
    module = name.replace("-", "_")
    short = name.replace("-", " ").capitalize()
    words = {
        "name": name,
        "module": module,
        "short": short,
        "title": f"What is {short.lower()}?",
    }
    paths = {
        "page": root / "chapters" / f"{name}.md",
        "figures": root / "src" / "lmcourse" / "figures" / f"{module}.py",
        "exercises": root / "src" / "lmcourse" / "exercises" / f"{module}.py",
        "proofs": root / "src" / "studies" / module / "proofs.py",
        "wrong_answers": root / "tests" / "pages" / "wrong_answers" / f"{module}.py",
    }
    texts = {
        path: (TEMPLATES / f"{kind}.txt").read_text(encoding="utf-8").format(**words)
        for kind, path in paths.items()
    }
    docstring = f'"""The evidence of the chapter *{name}*."""\n'
    return {root / "src" / "studies" / module / "__init__.py": docstring} | texts


def longer_contents(name: str, root: Path) -> str:
    """Return the text of ``_toc.yml`` with one more chapter, behind the last numbered one.

    ``name`` : str, such as "my-chapter"; ``root`` : Path, the repository.

    Raises
    ------
    CourseError
        If it cannot be read, has no numbered part, or no line ``- file: NAME`` for the last
        chapter.
    """
    pages = [*numbered_pages(root)]
    text = (root / "_toc.yml").read_text(encoding="utf-8")
    line = pages and re.search(
        rf"^( *- file: ){re.escape(pages[-1])}\s*$", text, re.MULTILINE
    )
    if not line:
        raise CourseError(f"_toc.yml: add `- file: {name}` to a numbered part by hand")
    end = line.start() + len(line[0].rstrip())
    return f"{text[:end]}\n{line[1]}{name}{text[end:]}"


def new_chapter(name: str, root: Path = ROOT) -> int:
    """Write the files of a new chapter, add it to ``_toc.yml``, and print what was done.

    Parameters
    ----------
    name : str
        Such as "my-chapter": small letters, digits and single hyphens between them, a
        letter first.
    root : Path
        The repository.

    Returns
    -------
    int
        The exit status: 0, or 2 if nothing was written, because the name has another form
        or is taken, or the contents cannot be added to; it prints which.
    """
    if not NAME.fullmatch(name):
        print(
            f"error: {name!r} is no name: use small letters, digits and single hyphens "
            "between them, a letter first"
        )
        return 2
    texts = files(name, root)
    # Such as studies/depends.py: a package of that name would hide the module.
    module = root / "src" / "studies" / f"{name.replace('-', '_')}.py"
    there = [path for path in [*texts, module] if path.exists()]
    try:
        if there or name in pages_in_contents(root):
            print(f"error: {name} exists: {', '.join(map(str, there)) or '_toc.yml'}")
            return 2
        contents = longer_contents(name, root)
    except CourseError as error:
        print(f"error: {error}")
        return 2
    for path, text in texts.items():
        write_whole(path, text)
        print(f"wrote {path.relative_to(root)}")
    write_whole(root / "_toc.yml", contents)
    print("added it to _toc.yml")
    print(f"Now: make html PAGE={name}. CONTRIBUTING.md says what else there is to do.")
    return 0


def main() -> int:
    """Read the command line, a chapter's name, and begin the chapter.

    Return the exit status (`new_chapter`).
    """
    parser = argparse.ArgumentParser("python -m lmbook.new_chapter", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", help="for example my-chapter")
    return new_chapter(parser.parse_args().name)


if __name__ == "__main__":
    sys.exit(main())
