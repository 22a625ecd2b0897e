"""What the chapters say of themselves, and what is said when it cannot be right."""

import shutil

import jupytext
import pytest
import yaml
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class

from lmbook.execute import keys
from lmbook.execute.keys import ROOT
from lmbook.execute.run import page_notebook
from lmbook.pages.course import CourseError, leads_to, read_course, steps

GOOD = {"short": "One", "minutes": 5, "builds_on": []}


def book(folder, **fronts):
    """Write a book of chapters in this order, each with what stands under ``course``."""
    (folder / "chapters").mkdir(exist_ok=True)
    files = [{"file": name} for name in fronts]
    part = {"caption": "All", "numbered": 1, "chapters": files}
    toc = {"format": "jb-book", "root": "index", "parts": [part]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    (folder / "chapters" / "index.md").write_text("# A book\n")
    for name, front in fronts.items():
        head = yaml.safe_dump({"course": front} if front is not None else {"a": 1})
        text = f"---\n{head}---\n\n```text\n# no title\n```\n\n# What is {name}?\n"
        (folder / "chapters" / f"{name}.md").write_text(text)
    return folder


def named(name, *below):
    return {"short": name.title(), "minutes": 5, "builds_on": list(below)}


def test_chapters_come_in_the_order_of_the_book(tmp_path):
    fronts = {"b": named("b"), "a": named("a", "b"), "c": named("c", "b", "a")}
    found = read_course(book(tmp_path, **fronts))
    assert list(found) == ["b", "a", "c"]
    assert [c.number for c in found.values()] == [1, 2, 3]
    assert found["c"].title == "What is c?"
    assert found["c"].builds_on == ("b", "a")
    assert steps(found) == {"b": [], "a": ["b"], "c": ["a"]}
    assert [c.name for c in leads_to("b", found)] == ["a"]  # by it one comes to c


@pytest.mark.parametrize(
    ("front", "said"),
    [
        (None, "lacks `course:` with short, minutes, builds_on"),
        ("Attention", "lacks `course:`"),
        ({"short": "One", "builds_on": []}, "minutes is missing: give a whole number"),
        (GOOD | {"minute": 5}, "'minute' is unknown"),
        (GOOD | {"minutes": "45"}, "minutes is '45': give a whole number"),
        (GOOD | {"minutes": 0}, "minutes is 0"),
        (GOOD | {"minutes": True}, "minutes is True"),
        (GOOD | {"short": " "}, "short is ' '"),
        (GOOD | {"builds_on": "zero"}, "builds_on is 'zero': give a list"),
        (GOOD | {"builds_on": ["zero", "zero"]}, "builds_on is ['zero', 'zero']"),
        (GOOD | {"builds_on": ["zeroo"]}, "names 'zeroo', which is no chapter"),
        (GOOD | {"builds_on": ["zeroo"]}, "Did you mean 'zero'?"),
        (GOOD | {"builds_on": ["two"]}, "names 'two', which does not come earlier"),
        (GOOD | {"builds_on": ["one"]}, "names 'one', which does not come earlier"),
        (GOOD | {"short": "zero"}, "short is 'zero', as that of zero.md"),
    ],
)
def test_what_is_wrong_is_said_and_where(tmp_path, front, said):
    others = {"two": named("two"), "three": named("three", "one")}
    with pytest.raises(CourseError) as error:
        read_course(book(tmp_path, zero=named("zero"), one=front, **others))
    assert str(error.value).startswith("chapters/one.md: ")
    assert said in str(error.value)


def test_every_mistake_is_told_at_once(tmp_path):
    folder = book(tmp_path, one={}, two=GOOD | {"minutes": -1})
    (folder / "chapters" / "two.md").write_text("---\ncourse: {short: Two\n---\n")
    (folder / "chapters" / "three.md").write_text("---\ncourse: {}\n---\n# Three\n")
    with pytest.raises(CourseError) as error:
        read_course(folder)
    assert len(str(error.value).split("\n")) == 3 + 2 + 1
    assert "two.md: it has no title" in str(error.value)
    assert "three.md has `course:`, but is in no part" in str(error.value)


def test_a_chapter_that_is_not_there(tmp_path):
    folder = book(tmp_path, one=GOOD)
    (folder / "chapters" / "one.md").unlink()
    with pytest.raises(CourseError, match=r"lists one, but there is no chapters/one\.md"):
        read_course(folder)


def test_a_book_without_numbered_parts_has_no_chapters(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    assert read_course(tmp_path) == {}


def test_the_front_matter_alone_executes_nothing_again():
    path = ROOT / "chapters" / "attention.md"
    text = path.read_text(encoding="utf-8")
    changed = jupytext.reads(text.replace("  minutes: ", "  minutes: 7", 1), fmt="md:myst")
    assert str(changed.metadata["course"]["minutes"]).startswith("7")
    assert keys.key(page_notebook(path)) == keys.key(changed)


def test_an_editor_that_saves_a_chapter_keeps_its_front_matter(tmp_path):
    """JupyterLab opens chapters as notebooks and writes them back."""
    for name in ("embeddings.md", "jupytext.toml"):
        shutil.copy(ROOT / "chapters" / name, tmp_path)
    editor = build_sync_jupytext_contents_manager_class(LargeFileManager)()
    editor.root_dir = str(tmp_path)
    opened = editor.get("embeddings.md", type="notebook")["content"]
    opened["cells"][0]["source"] += "\n\nA word more."
    editor.save({"type": "notebook", "content": opened}, "embeddings.md")
    text = (tmp_path / "embeddings.md").read_text(encoding="utf-8")
    assert "A word more." in text
    assert "course:\n  short: Embeddings\n" in text
