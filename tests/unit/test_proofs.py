"""What a page proves: sentences, statements, findings with another model, folds."""

import pytest

from lmbook.execute.keys import other_models
from lmbook.execute.run import execute_chapters, load_executed_chapter
from lmbook.execute.verdicts import (
    count_checks,
    proof_fields,
    proof_sentence,
    require_checks_last,
)
from lmcourse.models import default_checkpoint
from patience import PATIENCE
from references import write_references
from test_execute import page

# --- what cells say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("# The loop and `x` are one.\nassert x", "The loop and `x` are one"),
        ("\n# Two lines\n# make one\n\n# not this\n1", "Two lines make one"),
        ("# Two lines: they\n# make one\n# rival: a third\n1", "Two lines: they make one"),
    ],
)
def test_a_proof_says_what_it_checks(source, said):
    assert proof_sentence(source) == said


@pytest.mark.parametrize("source", ["assert x", "x = 1  # not here", "# Too short\nx", ""])
def test_a_proof_that_does_not_say_it_is_refused(source):
    with pytest.raises(ValueError, match="begins with a comment, a sentence"):
        proof_sentence(source)


GLUED = {"pairs": "1240", "gap-low": "0.125"}


def test_a_proof_says_what_it_was_held_against():
    assert (
        proof_fields("# The head wins in more pairs\nassert x  # rival: none", GLUED) == {}
    )
    source = """
# The noun named first wins: it does so
# in fewer pairs than the head
# rival: the noun
#   that stands first: no other
# n: {pairs:,} pairs
# interval : {gap-low:.2f} to {gap-low}
assert x
# null: not in the first comment
"""
    assert proof_fields(source, GLUED) == {
        "rival": "the noun that stands first: no other",
        "n": "1,240 pairs",
        "interval": "0.12 to 0.125",
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rivals: a noun", "no field 'rivals' here: it may have rival, null, n, interval"),
        ("Rival: a noun", "'Rival'"),
        ("null:", "'null' .* each once and with words after the colon"),
        ("n: 3 pairs\n# n: 4 pairs", "'n' .* each once"),
        (
            "n: {pair} pairs",
            "the field n: nothing was glued under the name 'pair'; glue it",
        ),
        ("n: {the pairs}", "the field n: nothing was glued under the name 'the pairs'"),
        (
            "n: {pairs:%Q}",
            "the field n: 'pairs' is 1240, which cannot be written in the format '%Q'",
        ),
    ],
)
def test_what_is_no_field_is_refused(line, said):
    with pytest.raises(ValueError, match=said):
        proof_fields(f"# The head wins in more pairs\n# {line}\nassert x", GLUED)


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


def test_in_a_finding_what_is_checked_comes_last():
    require_checks_last("x = 1\nglue('x', x)\nassert x\nfor a in b:\n    assert a")
    require_checks_last("x = 1")
    with pytest.raises(ValueError, match=r"glue\('x', x\)"):
        require_checks_last("assert x\nglue('x', x)")


# --- other models -------------------------------------------------------------------------

ASKS = "import os\n\nmodel = os.environ.get('LMCOURSE_BERT', '')"
FINDING = (
    ":tags: [proof, finding]\n# The model is the one that was built in\nassert not model"
)


@pytest.fixture(scope="module")
def swapped(tmp_path_factory):
    """Pages that were executed with another model, and which of them failed."""
    root = tmp_path_factory.mktemp("swapped")
    (root / "my-bert").mkdir()
    page(root, "finds", ASKS, FINDING, "'after'")
    page(root, "proves", ASKS, FINDING.replace(", finding", ""), "'after'")
    page(root, "raises", ASKS, FINDING.replace("assert not model", "1 / 0"), "'after'")
    page(root, "asks_not", "model = 'x'", FINDING)
    page(root, "holds", ASKS, FINDING.replace("not ", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("LMCOURSE_BERT", "./my-bert")
        yield root, execute_chapters(root, timeout=PATIENCE)


def test_only_a_findings_assertion_is_tolerated(swapped):
    assert {name: wrong["what"] for name, wrong in swapped[1].items()} == {
        "proves": "cell 2 failed (AssertionError)",
        "raises": "cell 2 failed (ZeroDivisionError)",
        "asks_not": "cell 2 failed (AssertionError)",
    }


def test_a_finding_that_fails_is_kept_and_what_comes_after_it_is_executed(swapped):
    found = load_executed_chapter("finds", swapped[0])
    assert found.metadata.lmbook_models == {"LMCOURSE_BERT": "my-bert"}
    *_, finding, after = found.cells
    assert finding.metadata.tags == ["proof", "finding"]
    (error,) = finding.outputs
    assert error.traceback == ["assert not model", "AssertionError: "]
    assert after.outputs[0].data["text/plain"] == "'after'"


def test_no_reference_is_made_with_another_model(swapped):
    with pytest.raises(LookupError, match="unset LMCOURSE_BERT"):
        write_references(swapped[0])


def test_another_model_has_the_name_of_its_file_or_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("LMCOURSE_BERT", raising=False)  # of the pages above
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
