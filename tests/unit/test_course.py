"""What the chapters say of themselves, and what is said when it cannot be right."""

import shutil

import pytest
import yaml
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class

from lmbook.execute.keys import ROOT
from lmbook.pages.course import (
    CourseError,
    direct_prerequisites,
    next_chapters,
    parts_in_contents,
    read_course,
)

GOOD = {"short": "One", "minutes": {"read": 5, "work": 20}, "builds_on": []}


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
    return GOOD | {"short": name.title(), "builds_on": list(below)}


def test_chapters_come_in_the_order_of_the_book(tmp_path):
    fronts = {"b": named("b"), "a": named("a", "b"), "c": named("c", "b", "a")}
    fronts["a"]["paths"] = ["weekend"]
    chapters = read_course(book(tmp_path, **fronts))
    assert list(chapters) == ["b", "a", "c"]
    assert [c.number for c in chapters.values()] == [1, 2, 3]
    assert chapters["c"].title == "What is c?"
    assert chapters["c"].builds_on == ("b", "a")
    assert chapters["c"].minutes == {"read": 5, "work": 20}
    assert [c.paths for c in chapters.values()] == [(), ("weekend",), ()]
    assert direct_prerequisites(chapters) == {"b": [], "a": ["b"], "c": ["a"]}
    assert [c.name for c in next_chapters("b", chapters)] == ["a"]  # by it one comes to c


BELOW = {"file": "b", "sections": [{"file": "c"}]}
CONTENTS = {
    "sections": (
        {"parts": [{"numbered": 1, "chapters": [{"file": "a", "sections": [BELOW]}]}]},
        ["1", "1.1", "1.1.1"],
    ),
    "subtrees": (
        {
            "parts": [
                {
                    "numbered": 1,
                    "chapters": [
                        {
                            "file": "a",
                            "subtrees": [
                                {"caption": "One", "sections": [{"file": "b"}]},
                                {"caption": "Two", "sections": [{"file": "c"}]},
                            ],
                        }
                    ],
                }
            ]
        },
        ["1", "1.1", "1.2"],
    ),
    "no parts": (
        {"options": {"numbered": True}, "chapters": [{"file": "a"}, BELOW]},
        ["1", "2", "2.1"],
    ),
    "no numbers": ({"chapters": [{"file": "a"}, BELOW]}, ["", "", ""]),
    "a part without numbers": (
        {
            "parts": [
                {"numbered": 1, "chapters": [{"file": "a"}]},
                {"chapters": [{"file": "plain"}, {"glob": "b"}]},
                {"numbered": 1, "chapters": [{"file": "c"}]},
            ]
        },
        ["1", "", "2"],
    ),
}


@pytest.mark.parametrize("how", CONTENTS)
def test_a_chapter_has_its_minutes_wherever_it_stands_in_the_contents(tmp_path, how):
    toc, numerals = CONTENTS[how]
    folder = book(tmp_path, a=named("a"), b=named("b", "a"), c=named("c", "a"))
    (folder / "chapters" / "plain.md").write_text("# A page that is no chapter\n")
    head = {"format": "jb-book", "root": "index"}
    (folder / "_toc.yml").write_text(yaml.safe_dump(head | toc))
    chapters = read_course(folder)
    assert {name: c.numeral for name, c in chapters.items()} == dict(
        zip("abc", numerals, strict=True)
    )
    assert all(c.minutes == {"read": 5, "work": 20} for c in chapters.values())
    assert [c.number for c in chapters.values()] == [1, 2, 3]


def test_parts_have_the_pages_that_files_and_patterns_name(tmp_path):
    chapters = tmp_path / "chapters"
    (chapters / "poems").mkdir(parents=True)
    for name in ("index", "a", "b", "c", "poems/one", "poems/two"):
        (chapters / f"{name}.md").write_text(f"# {name}\n")
    elsewhere = {"url": "https://example.org", "title": "Elsewhere"}
    below = {"file": "a", "sections": [elsewhere, {"file": "b.md"}]}
    parts = [
        {"caption": "Same", "chapters": [elsewhere, below]},
        {"caption": "Links", "chapters": [elsewhere]},
        {"chapters": [{"file": "poems/two"}, {"glob": "poems/*"}]},
        {"caption": "Same", "chapters": [{"file": "c"}]},
    ]
    toc = {"format": "jb-book", "root": "index", "parts": parts}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc))
    assert parts_in_contents(tmp_path) == [
        ("", ["index"]),
        ("Same", ["a", "b"]),
        ("", ["poems/two", "poems/one"]),
        ("Same", ["c"]),
    ]


def test_a_chapter_without_a_number_builds_on_chapters(tmp_path):
    folder = book(tmp_path, a=named("a"), b=named("b", "plain"))
    (folder / "chapters" / "plain.md").write_text("# A page that is no chapter\n")
    files = "".join(f"\n- file: {name}" for name in ("plain", "a", "b"))
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:{files}\n")
    with pytest.raises(CourseError, match=r"b\.md: .* 'plain', no chapter before it"):
        read_course(folder)


@pytest.mark.parametrize(
    ("front", "message"),
    [
        (None, "needs `course:` with short, minutes, builds_on, and no more but paths"),
        ({"short": "One", "builds_on": []}, "needs `course:`"),
        (GOOD | {"minute": 5}, "needs `course:`"),
        (GOOD | {"minutes": 45}, "minutes is 45: give whole numbers, {read: 25, work: 90}"),
        (GOOD | {"minutes": {"read": 5}}, "minutes is {'read': 5}: give"),
        (GOOD | {"minutes": {"read": 5, "work": 9, "look": 1}}, "minutes is {"),
        (GOOD | {"minutes": {"read": "5", "work": 20}}, "minutes is {'read': '5'"),
        (GOOD | {"minutes": {"read": 5, "work": 0}}, "minutes is {"),
        (GOOD | {"minutes": {"read": True, "work": 20}}, "minutes is {"),
        (GOOD | {"paths": "poems"}, "paths is 'poems': give a list of poems, weekend"),
        (GOOD | {"paths": ["poem"]}, "paths is ['poem']: give a list"),
        (GOOD | {"short": " "}, "short is ' '"),
        (GOOD | {"builds_on": "zero"}, "builds_on is 'zero': give a list"),
        (GOOD | {"builds_on": ["zeroo"]}, "names 'zeroo', no chapter before it"),
        (GOOD | {"builds_on": ["one"]}, "names 'one', no chapter before it"),
        (GOOD | {"short": "Zero"}, "short is as that of zero.md"),
    ],
)
def test_what_is_wrong_is_said_and_where(tmp_path, front, message):
    others = {"two": named("two"), "three": named("three", "one")}
    with pytest.raises(CourseError) as error:
        read_course(book(tmp_path, zero=named("zero"), one=front, **others))
    assert str(error.value).startswith("chapters/one.md: ")
    assert message in str(error.value)


def test_every_mistake_is_told_at_once(tmp_path):
    folder = book(tmp_path, one={}, two=GOOD)
    (folder / "chapters" / "two.md").write_text("---\ncourse: {short: Two\n---\n")
    with pytest.raises(CourseError) as error:
        read_course(folder)
    assert "one.md: its front matter needs" in str(error.value)
    assert "two.md: its front matter cannot be read" in str(error.value)
    assert "two.md: it has no title" in str(error.value)


def test_an_hour_is_about_an_hour_and_a_weekend_needs_nothing_else(tmp_path):
    long = {"minutes": {"read": 38, "work": 90}, "paths": ["poems"]}
    with pytest.raises(CourseError) as error:
        read_course(book(tmp_path, one=named("one") | long, two=named("two") | long))
    assert "the path poems is an hour, 75 minutes at most" in str(error.value)
    assert "{'one': 38, 'two': 38}" in str(error.value)
    ours = read_course(ROOT)
    minutes = sum(c.minutes["read"] for c in ours.values() if "poems" in c.paths)
    assert 45 <= minutes <= 75
    weekend = {name: c for name, c in ours.items() if "weekend" in c.paths}
    assert weekend
    for chapter in weekend.values():
        assert {*chapter.builds_on} <= weekend.keys(), chapter.name


def test_an_editor_that_saves_a_chapter_keeps_its_front_matter(tmp_path):
    """Jupytext opens chapters as notebooks and writes them back."""
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
