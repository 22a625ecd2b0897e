"""What the chapters say of themselves, and what is said when it cannot be right."""

import shutil

import pytest
import yaml
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class

from lmbook.execute.keys import ROOT
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
        text = f"---\n{head}---\n\n# What is {name}?\n"
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
        (None, "needs `course:` with short, minutes, builds_on, and no more"),
        ({"short": "One", "builds_on": []}, "needs `course:`"),
        (GOOD | {"minute": 5}, "needs `course:`"),
        (GOOD | {"minutes": "45"}, "minutes is '45': give a whole number"),
        (GOOD | {"minutes": 0}, "minutes is 0"),
        (GOOD | {"minutes": True}, "minutes is True"),
        (GOOD | {"short": " "}, "short is ' '"),
        (GOOD | {"builds_on": "zero"}, "builds_on is 'zero': give a list"),
        (GOOD | {"builds_on": ["zeroo"]}, "names 'zeroo', no chapter before it"),
        (GOOD | {"builds_on": ["one"]}, "names 'one', no chapter before it"),
        (GOOD | {"short": "Zero"}, "short is as that of zero.md"),
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
    with pytest.raises(CourseError) as error:
        read_course(folder)
    assert "one.md: its front matter needs" in str(error.value)
    assert "two.md: its front matter cannot be read" in str(error.value)
    assert "two.md: it has no title" in str(error.value)


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
