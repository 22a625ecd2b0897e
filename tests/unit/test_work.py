"""The reader's folder of notebooks: nothing that was saved in it is lost."""

import pytest

from lmbook.work import bring


@pytest.fixture
def folders(tmp_path):
    """The book's notebooks, and the reader's folder with copies of them."""
    book, work = tmp_path / "book", tmp_path / "work"
    book.mkdir()
    for name in ("one", "two"):
        (book / f"{name}.ipynb").write_text(f"{name}, first")
    assert bring(book, work) == []
    return book, work


def held(work):
    return {path.name: path.read_text() for path in work.glob("*.ipynb")}


def test_a_copy_is_replaced_until_its_reader_saves_it_and_never_after(folders):
    book, work = folders
    (work / "one.ipynb").write_text("mine")
    for edition in ("second", "third"):
        for name in ("one", "two"):
            (book / f"{name}.ipynb").write_text(f"{name}, {edition}")
        assert bring(book, work) == ["one.ipynb"]
        assert held(work) == {"one.ipynb": "mine", "two.ipynb": f"two, {edition}"}
    (work / "one.ipynb").rename(work / "old.ipynb")
    assert bring(book, work) == []
    own = {"one.ipynb": "one, third", "old.ipynb": "mine"}
    assert held(work) == {**own, "two.ipynb": "two, third"}


def test_where_the_book_has_nothing_newer_nothing_is_said(folders):
    book, work = folders
    (work / "one.ipynb").write_text("mine")
    assert bring(book, work) == []
    assert held(work) == {"one.ipynb": "mine", "two.ipynb": "two, first"}


@pytest.mark.parametrize("left", [None, b"", b'{"one.ipynb": "', b"[1]", b"\xff"])
def test_without_its_record_what_differs_counts_as_saved(folders, left):
    """Nor if it is damaged; nor does it matter what else the reader keeps there."""
    book, work = folders
    record = work / ".copied.json"
    record.unlink()
    if left is not None:
        record.write_bytes(left)
    (work / "one.ipynb").write_text("mine")
    (work / "notes").mkdir()
    assert bring(book, work) == ["one.ipynb"]
    (book / "two.ipynb").write_text("two, second")
    assert bring(book, work) == ["one.ipynb"]
    assert held(work) == {"one.ipynb": "mine", "two.ipynb": "two, second"}
