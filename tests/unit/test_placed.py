"""Proofs that a chapter places: where they run, what they leave, what they see."""

import functools
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch

from lmbook.execute import nulls
from lmbook.execute.placed import is_placed_proof, place_proofs
from lmbook.execute.run import (
    execute_chapters,
    load_executed_chapter,
    page_notebook,
    restore_outputs,
)
from lmbook.execute.verdicts import error_outputs, is_finding, note_verdicts, proof_record
from lmbook.pages.glue import format_glue, glued_values
from patience import PATIENCE
from studies import findings
from studies.findings import Page, Proof, finding, plain_values, proof, right_letter
from test_execute import page

PROOFS = '''
import os

from studies.findings import finding, proof
from studies.placed_helper import HALF


@proof("Twice one is two.")
def twice_is_two(page):
    """The same by addition."""
    assert page.double(1) == 1 + 1
    return {"two": page.double(1), "half": HALF}


def empty(page):
    """A page whose model has no name. Nothing can be found in it."""
    return page.replaced(model="")


@finding(
    "No other model was chosen",
    rival="a guess",
    null=empty,
    n="{letters} letters",
    interval="{span:.0%}",
)
def no_other_model(page):
    """The name is what it is."""
    assert not page.model, "another model"
    return {"letters": len(page.model), "span": (0.25, 0.5)}


@finding("This divides by zero", rival="one", null=empty, n="{x} numbers")
def divides(page):
    return {"x": 1 / 0}
'''
DEFINES = """\
import os

model = os.environ.get('LMCOURSE_BERT', '')


def double(x):
    return 2 * x"""


def book_with(root, **pages):
    """Write pages that place proofs, and the proofs of each."""
    for name, proofs in pages.items():
        page(root, name, DEFINES)
        path = root / "chapters" / f"{name}.md"
        directives = "".join(f"\n:::{{proof}} {each}\n:::\n\nProse.\n" for each in proofs)
        path.write_text(
            path.read_text() + directives + "\n```{code-cell} python\n'after'\n```\n"
        )
        folder = root / "src" / "studies" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "proofs.py").write_text(PROOFS)
    (root / "src" / "studies" / "placed_helper.py").write_text("HALF = 0.5\n")
    return root


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book of two pages, executed with the default model."""
    root = book_with(
        tmp_path_factory.mktemp("placed"),
        placed_well=["twice_is_two", "no_other_model"],
        placed_wrong=["divides"],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LMCOURSE_BERT", raising=False)
        yield root, execute_chapters(root, timeout=PATIENCE)


def test_a_proof_runs_where_it_is_placed_and_leaves_what_the_text_quotes(book):
    notebook = load_executed_chapter("placed_well", book[0])
    values = glued_values(notebook)
    assert values["twice_is_two.two"] == "2"
    assert (
        format_glue(values, "no_other_model.span", ".0%") == "25 to 50\N{NO-BREAK SPACE}%"
    )
    placed = [cell for cell in notebook.cells if is_placed_proof(cell)]
    assert [proof_record(cell)["sentence"] for cell in placed] == [
        "Twice one is two",
        "No other model was chosen",
    ]
    assert [is_finding(cell) for cell in placed] == [False, True]
    record = proof_record(placed[1])
    assert dict(record["fields"]) == {
        "rival": "a guess",
        "null": "A page whose model has no name. Nothing can be found in it",
        "n": "{letters} letters",
        "interval": "{span:.0%}",
    }
    assert "page.model" in record["source"]
    verdicts = note_verdicts(notebook, whole=True)
    assert (verdicts["proofs"], verdicts["findings"], verdicts["statements"]) == (2, 1, 2)
    assert placed[0].metadata["lmbook"] == "checked"


def test_an_error_of_a_proof_fails_the_page(book):
    assert {name: wrong["what"] for name, wrong in book[1].items()} == {
        "placed_wrong": "cell 2 failed (ZeroDivisionError)"
    }


@pytest.mark.parametrize("changed", ["placed_well/proofs.py", "placed_helper.py"])
def test_a_page_depends_on_its_proofs_and_on_what_these_import(book, changed):
    def wrong():
        return restore_outputs(
            page_notebook(book[0] / "chapters" / "placed_well.md"), "placed_well", book[0]
        )

    path = book[0] / "src" / "studies" / changed
    before = path.read_text()
    assert wrong() is None
    path.write_text(before + "\nMORE = 1\n")
    assert wrong()["what"] == "it changed since it was executed"
    path.write_text(before)
    assert wrong() is None


@pytest.fixture
def swapped_page(tmp_path, monkeypatch):
    """A page with a finding and a proof, executed with a model of the reader's."""
    book_with(tmp_path, placed_swap=["no_other_model", "twice_is_two"])
    (tmp_path / "my-bert").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMCOURSE_BERT", "./my-bert")
    assert execute_chapters(tmp_path, timeout=PATIENCE) == {}
    return load_executed_chapter("placed_swap", tmp_path)


def test_a_finding_that_another_model_denies_still_has_its_values(swapped_page):
    finding_cell, proof_cell = filter(is_placed_proof, swapped_page.cells)
    assert error_outputs(finding_cell)[0].ename == "NotSo"
    failed = 'assert not page.model, "another model": another model'
    assert proof_record(finding_cell)["failed"] == failed
    assert int(glued_values(swapped_page)["no_other_model.letters"]) > 0
    assert not error_outputs(proof_cell)
    note_verdicts(swapped_page, whole=True)
    assert finding_cell.metadata["lmbook"] == "not so"
    assert proof_cell.metadata["lmbook"] == "checked"


# --- where it stands ----------------------------------------------------------------------


def test_prose_is_cut_at_a_proof_and_its_lines_are_known():
    text = "One.\n\n:::{proof} first\n:::\n\nTwo.\n:::{proof} second\n:::"
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("1")]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"source_map": [10, 30]})
    place_proofs(notebook, "a-page")
    assert [(c.cell_type, c.source.split("\n")[0]) for c in notebook.cells] == [
        ("markdown", "One."),
        ("code", "import studies.findings"),
        ("markdown", "Two."),
        ("code", "import studies.findings"),
        ("code", "1"),
    ]
    assert notebook.metadata.source_map == [10, 12, 15, 16, 30]
    assert '"a-page", "second"' in notebook.cells[3].source


def test_a_proof_in_a_list_or_another_directive_stays_there():
    text = "- a\n\n  :::{proof} one\n  :::\n\n::::{note}\n:::{proof} two\n:::\n::::"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    place_proofs(notebook, "x")
    assert [cell.source for cell in notebook.cells] == [text]


# --- what it sees -------------------------------------------------------------------------


def defined():
    """Return the namespace of a page with a function, a cached one, and a value."""
    names = {}
    code = "import functools\nx = 1\n\ndef f(y=1, *, z=2):\n    return x + y + z\n\n"
    code += "@functools.cache\ndef g():\n    return x\n\nold = f()"
    exec(code, names)
    return names


def test_a_chapter_that_is_none_has_no_findings_and_is_told(capsys):
    assert nulls.main(["atention"]) == 2
    output = capsys.readouterr().err
    assert output.startswith("error: there is no chapters/atention.md with code in it")
    assert "attention" in output


def test_a_page_that_is_not_utf_8_is_told_before_its_findings_run(tmp_path, capsys):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "bee.md").write_bytes("A café".encode("latin-1"))
    assert nulls.main(["bee", "--root", str(tmp_path)]) == 2
    output = capsys.readouterr().err
    assert output.startswith("error: chapters/bee.md, line 1: the byte 0xe9 is not UTF-8")


def test_the_folder_of_findings_may_begin_at_home(tmp_path, capsys, monkeypatch):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "bee.md").write_bytes("A café".encode("latin-1"))
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert nulls.main(["bee", "--root", f"~/{tmp_path.name}"]) == 2
    assert "chapters/bee.md, line 1" in capsys.readouterr().err


def test_a_page_is_read_and_not_written():
    page = Page(defined())
    assert page.x == 1
    with pytest.raises(AttributeError, match="only reads"):
        page.x = 2
    with pytest.raises(AttributeError, match="has not defined 'w'"):
        page.w  # noqa: B018


def test_what_is_replaced_is_seen_by_the_pages_functions():
    page = Page(defined())
    assert page.g() == 1
    other = page.replaced(x=10)
    assert (other.x, other.f(), other.f(0, z=0), other.g(), other.old) == (
        10,
        13,
        10,
        10,
        4,
    )
    assert (page.x, page.f(), page.g()) == (1, 4, 1)
    assert other.replaced(x=20).f() == 23
    assert other.replaced(f=len).f("abc") == 3
    with pytest.raises(AttributeError, match="'w'"):
        page.replaced(w=1)


# --- what it says -------------------------------------------------------------------------


def some_null(page):
    """Nothing to find."""


SAID = {"rival": "a guess", "n": "3 words", "null": some_null}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rival": ""}, "must say its rival"),
        ({"n": " "}, "its n"),
        ({"null": None}, "say in no_null why"),
        ({"no_null": "it cannot be"}, "say in no_null why"),
        ({"null": lambda page: page}, "no docstring"),
    ],
)
def test_a_finding_says_what_it_is_held_against(changed, message):
    with pytest.raises(ValueError, match=message):
        finding("It is as said", **SAID | changed)(some_null)
    assert isinstance(finding("It is as said", **SAID)(some_null), Proof)


def test_a_proof_has_a_sentence():
    with pytest.raises(ValueError, match="sentence"):
        proof("Too short")(some_null)


def test_what_has_no_null_says_why():
    statement = finding("It is as said", rival="a", n="b", no_null="all are drawn")(
        some_null
    )
    assert statement.fields()["null"] == "none, since all are drawn"


@proof("It returns what it is given")
def returns(given):
    return given


def test_numbers_of_libraries_become_pythons():
    given = {"a": np.float32(0.5), "b": torch.tensor(2), "c": np.array([1, 2]), "d": "x"}
    given["e"] = (np.float64(0.25), 1)
    assert plain_values(returns, given) == {
        "a": 0.5, "b": 2, "c": (1, 2), "d": "x", "e": (0.25, 1),
    }  # fmt: skip
    assert plain_values(returns, None) == {}


@pytest.mark.parametrize("given", [{"a": object()}, {"a": None}, 3, {"a": (1, {})}])
def test_what_no_text_can_quote_is_refused(given):
    with pytest.raises(TypeError, match="returns"):
        plain_values(returns, given)


@pytest.mark.parametrize(
    ("choices", "otherwise", "letter"),
    [
        ({"c": True, "a": False}, "b", "c"),
        ({"c": False, "a": True}, "b", "a"),
        ({"c": True, "a": True}, "b", "c"),
        ({"c": False, "a": False}, "b", "b"),
        ({"a": np.bool_(False), "c": np.bool_(False)}, "?", "?"),
    ],
)
def test_the_right_letter_is_the_first_whose_condition_holds(choices, otherwise, letter):
    assert right_letter(choices, otherwise) == letter


def test_no_letter_is_right_if_no_condition_holds():
    assert right_letter({"a": False, "c": False}) == "?"


def test_a_name_that_is_no_proof_is_told_with_those_that_are(monkeypatch):
    module = SimpleNamespace(__name__="studies.x.proofs", returns=returns, other=3)
    monkeypatch.setattr(findings, "proofs_module", lambda chapter: module)
    assert findings.find("x", "returns") is returns
    with pytest.raises(LookupError, match="no proof 'retuns'; it has returns"):
        findings.find("x", "retuns")


@finding("It holds by a helper's word", rival="a", n="b", no_null="it is a test")
def asserts_elsewhere(page):
    torch.testing.assert_close(torch.ones(1), torch.zeros(1))
    return {"a": 1}


def test_a_finding_asserts_by_statements():
    with pytest.raises(RuntimeError, match="should be `assert` statements"):
        findings.values_unchecked(asserts_elsewhere, Page({}))


def test_a_proof_takes_no_random_number_from_its_page():
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        with findings.same_draws():
            torch.rand(3 * len(drawn))
            np.random.random(3 * len(drawn))  # noqa: NPY002
        drawn.append((torch.rand(1).item(), np.random.random()))  # noqa: NPY002
    assert drawn[0] == drawn[1]


# --- how the text quotes it ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("it.is", "it returns no 'is'; it returns a, b"),
        ("that.is", "no proof on this page returns 'that.is'"),
        ("is", "nothing was glued under the name 'is'"),
    ],
)
def test_a_name_that_nothing_returns_is_told_with_what_there_is(name, message):
    with pytest.raises(ValueError, match=message):
        format_glue({"it.a": "1", "it.b": "2"}, name, "")


@pytest.mark.parametrize("form", ["", ".0%", ",d"])
def test_a_number_that_a_model_can_not_have_is_a_dash_in_any_format(form):
    assert format_glue({"it.a": "'–'"}, "it.a", form) == "–"
    assert format_glue({"it.a": "–"}, "it.a", form) == "–"


def test_the_cache_of_a_page_keeps_its_size():
    names = {"functools": functools}
    exec("@functools.lru_cache(maxsize=3)\ndef f(x):\n    return x", names)
    assert Page(names).replaced(functools=functools).f.cache_parameters()["maxsize"] == 3


def test_a_record_says_what_is_asserted_without_the_docstrings_sections(monkeypatch):
    @proof("Twice one is two.")
    def documented(page):
        """In whole numbers.

        And in no others.

        Parameters
        ----------
        page : Page
            Unused.
        """
        return {}

    outputs = []
    monkeypatch.setattr(findings, "find", lambda chapter, name: documented)
    monkeypatch.setattr("IPython.display.display", lambda data, **_: outputs.append(data))
    findings.run("any", "documented", {})
    (output,) = outputs
    assert output[findings.RECORD]["about"] == "In whole numbers.\n\nAnd in no others."
