"""Every finding holds on its page, and fails where there is nothing to find.

The lesson of each page that places findings is executed once, in a process of its own
(`lmbook.execute.nulls`). A finding that fails in its null is run there once more without
its assertions, and has to hold then: so it is they that decide. What has no null is among
the skipped tests, with its reason.
"""

import json
import subprocess
import sys
from functools import cache

import pytest

from lmbook.execute.keys import ROOT
from lmbook.execute.placed import is_placed_proof, proof_name
from lmbook.execute.run import chapter_paths, page_notebook
from studies.findings import Proof, find, proofs_module

# Pages whose lesson takes a few seconds; all the others in `make steady`.
QUICK = ("positional-encoding",)


def findings():
    """Return page and name of every finding that a page places."""
    placed = []
    for path in chapter_paths():
        for cell in filter(is_placed_proof, page_notebook(path).cells):
            if find(path.stem, proof_name(cell)).kind == "finding":
                placed.append((path.stem, proof_name(cell)))
    return placed


def proofs_of(chapter):
    """Return the names of the proofs that a chapter's module defines; none without one."""
    try:
        module = proofs_module(chapter)
    except ModuleNotFoundError:
        return set()
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, Proof) and value.function.__module__ == module.__name__
    }


@pytest.mark.parametrize("path", chapter_paths(), ids=lambda path: path.stem)
def test_every_proof_stands_on_its_page(path):
    """A proof that no page places is never run, and nobody reads its sentence."""
    placed = {
        proof_name(cell) for cell in page_notebook(path).cells if is_placed_proof(cell)
    }
    assert proofs_of(path.stem) <= placed


def marked(page, name):
    steady = () if page in QUICK else pytest.mark.steady
    return pytest.param(page, name, marks=steady, id=f"{page}-{name}")


@cache
def asked(page, root=ROOT, asserts=True):
    """Return what `lmbook.execute.nulls` says of each finding of a page, by name.

    With ``asserts=False`` Python leaves out every assert statement (-O).
    """
    how = [] if asserts else ["-O"]
    command = [sys.executable, *how, "-m", "lmbook.execute.nulls", page, "--json"]
    done = subprocess.run(
        [*command, "--root", str(root)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout, done.stderr[-4000:]
    return {each["name"]: each for each in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.slow
@pytest.mark.parametrize(("page", "name"), [marked(*each) for each in findings()])
def test_a_finding_holds_on_its_page_and_fails_on_its_null(page, name):
    outcome = asked(page)[name]
    assert not outcome["problem"], outcome["problem"]
    if outcome["no_null"]:
        pytest.skip(f"{page}: {name} has no null, since {outcome['no_null']}")


# --- the test itself ----------------------------------------------------------------------

PAGE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# A page

```{code-cell} python
import random

numbers = [random.random() + 1 for _ in range(9)]
numbers
```
"""
PROOFS = '''
from studies.findings import finding


def zeros(page):
    """Zeros in their place."""
    return page.replaced(numbers=[0.0] * len(page.numbers))


def other(page):
    """Another name."""
    return page.replaced(nubmers=[])


SAID = {"rival": "zero", "n": "{count} numbers"}


@finding("Their sum is large", **SAID, null=zeros)
def sums(page):
    assert sum(page.numbers) > 8
    return {"count": len(page.numbers)}


@finding("It is trivially true", **SAID, null=zeros)
def trivial(page):
    assert len(page.numbers) == 9
    return {"count": len(page.numbers)}


@finding("It is not true", **SAID, null=zeros)
def untrue(page):
    assert sum(page.numbers) > 100
    return {"count": 9}


@finding("Its null changes nothing", **SAID, null=other)
def mistaken(page):
    assert sum(page.numbers) > 8
    return {"count": 9}


@finding("It breaks in its null", **SAID, null=zeros)
def breaks(page):
    assert 1 / page.numbers[0] < 2
    return {"count": 9}


@finding("It returns something else there", **SAID, null=zeros)
def elsewhere(page):
    assert sum(page.numbers) > 8
    return {"count": 9} if sum(page.numbers) else {"none": 0}


@finding("A field wants what is not returned", rival="a", n="{nothing}", null=zeros)
def unfilled(page):
    assert sum(page.numbers) > 8


@finding("Its check is no assert statement", **SAID, null=zeros)
def by_other_means(page):
    if sum(page.numbers) < 8:
        raise AssertionError
    return {"count": 9}


@finding("It needs no null", **SAID, no_null="the sum is exact")
def exact(page):
    return {"count": 9}
'''
WRONG = {
    "sums": "",
    "trivial": "it holds in its null as well",
    "untrue": "it fails on its page: AssertionError",
    "mistaken": "has not defined 'nubmers'",
    "breaks": "raises no AssertionError, but ZeroDivisionError",
    "elsewhere": "it returns other names: ['count', 'none']",
    "unfilled": "no proof on this page returns 'unfilled.nothing'",
    "by_other_means": "should be `assert` statements of its own module",
    "exact": "",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book of one page, whose findings are those of `PROOFS`."""
    root = tmp_path_factory.mktemp("nulls")
    (root / "chapters").mkdir()
    placed = "".join(f"\n:::{{proof}} {name}\n:::\n" for name in WRONG)
    (root / "chapters" / "of_nulls.md").write_text(PAGE + placed)
    folder = root / "src" / "studies" / "of_nulls"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "proofs.py").write_text(PROOFS)
    return root


@pytest.fixture(scope="module")
def outcomes(book):
    return asked("of_nulls", book)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_finding_is_seen(outcomes, name):
    assert WRONG[name] in outcomes[name]["problem"]
    assert bool(outcomes[name]["problem"]) == bool(WRONG[name])
    assert bool(outcomes[name]["no_null"]) == (name == "exact")


def test_without_its_assertions_a_finding_is_seen_to_be_trivially_true(book):
    outcomes_without = asked("of_nulls", book, asserts=False)
    for name in ("sums", "trivial", "untrue", "mistaken"):
        wanted = "has not defined" if name == "mistaken" else "it holds in its null as well"
        assert wanted in outcomes_without[name]["problem"]
