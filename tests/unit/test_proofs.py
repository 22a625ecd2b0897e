"""What a page proves: statements, and findings with another model."""

import pytest

from lmbook.execute.keys import other_models
from lmbook.execute.placed import is_placed_proof
from lmbook.execute.run import execute_chapters, load_executed_chapter
from lmbook.execute.verdicts import count_checks, error_outputs
from lmcourse.models import default_checkpoint
from patience import PATIENCE
from references import write_references
from test_execute import page, prove

# --- what cells say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("assert a\nassert b and c", 2),
        ("for x in y:\n    assert x", 1),
        ("torch.testing.assert_close(a, b); np.testing.assert_allclose(a, b)", 2),
        ("close(a, b)\nnearly(a, b)", 2),
        ("assert nearly(a, b)", 1),
        ("plt.close(figure)\nclose = 3\nenclose(x)", 0),
        ("def nearly(a, b):\n    assert_close(a, b)", 0),
        ("%matplotlib inline\nfiles = !ls\nassert files", 1),
    ],
)
def test_statements_are_counted_as_they_are_written(source, number):
    assert count_checks(source) == number


# --- other models -------------------------------------------------------------------------

ASKS = "import os\n\nmodel = os.environ.get('LMCOURSE_BERT', '')"
PROOFS = """\
from studies.findings import finding, proof

SAID = {"rival": "a guess", "n": "one model", "no_null": "it is a test"}


@finding("The model is the one that was built in", **SAID)
def built_in(page):
    assert not page.model


@proof("The model is surely the one that was built in")
def surely_built_in(page):
    assert not page.model


@finding("The model is divided by zero", **SAID)
def divided(page):
    assert 1 / 0


@finding("The model is another one", **SAID)
def another(page):
    assert page.model
"""


@pytest.fixture(scope="module")
def swapped(tmp_path_factory):
    """Pages that were executed with another model, and which of them failed."""
    root = tmp_path_factory.mktemp("swapped")
    (root / "my-bert").mkdir()
    for name, proof, code in (
        ("finds", "built_in", ASKS),
        ("proves", "surely_built_in", ASKS),
        ("raises", "divided", ASKS),
        ("asks_not", "built_in", "model = 'x'"),
        ("holds", "another", ASKS),
    ):
        page(root, name, code)
        prove(root, name, proof, PROOFS, "'after'")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("LMCOURSE_BERT", "./my-bert")
        yield root, execute_chapters(root, timeout=PATIENCE)


def test_only_a_findings_assertion_is_tolerated(swapped):
    assert {name: wrong["what"] for name, wrong in swapped[1].items()} == {
        "proves": "cell 2 failed (AssertionError)",
        "raises": "cell 2 failed (ZeroDivisionError)",
        "asks_not": "cell 2 failed (NotSo)",
    }


def test_a_finding_that_fails_is_kept_and_what_comes_after_it_is_executed(swapped):
    notebook = load_executed_chapter("finds", swapped[0])
    assert notebook.metadata.lmbook_models == {"LMCOURSE_BERT": "my-bert"}
    *_, finding, after = notebook.cells
    assert is_placed_proof(finding)
    (error,) = error_outputs(finding)
    assert error.ename == "NotSo"
    assert after.outputs[0].data["text/plain"] == "'after'"


def test_no_reference_is_made_with_another_model(swapped):
    with pytest.raises(LookupError, match="unset LMCOURSE_BERT"):
        write_references(swapped[0])


def test_another_model_has_the_name_of_its_file_or_folder(monkeypatch, tmp_path):
    # The pages of `swapped` are there until the module ends, and with them its variable.
    monkeypatch.delenv("LMCOURSE_BERT", raising=False)
    (tmp_path / "gpt.2").mkdir()
    (tmp_path / "mine.safetensors").write_text("weights")
    for variable, value, names in (
        ("LMCOURSE_BERT", default_checkpoint(), []),
        ("LMCOURSE_BERT", "some/bert@main", ["some/bert@main"]),
        ("LMCOURSE_GPT", "sonnets", []),
        ("LMCOURSE_GPT", tmp_path / "gpt.2", ["gpt.2"]),
        ("LMCOURSE_GPT", tmp_path / "mine.safetensors", ["mine"]),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(variable, str(value))
            assert list(other_models().values()) == names
