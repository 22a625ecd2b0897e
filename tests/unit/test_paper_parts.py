"""The book on paper: where its title comes from, and where it is written."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from lmbook.pages.course import CourseError
from lmbook.publish import paper
from lmbook.publish.paper import book_title


def test_the_title_is_the_configurations(tmp_path):
    (tmp_path / "_config.yml").write_text("title: Poems & letters\nauthor: Nobody\n")
    assert book_title(tmp_path) == "Poems & letters"


@pytest.mark.parametrize("config", ["author: Nobody\n", "title:\n", ""])
def test_a_configuration_without_a_title_is_told_of(tmp_path, config):
    (tmp_path / "_config.yml").write_text(config)
    with pytest.raises(CourseError, match=r"_config\.yml has no title: write"):
        book_title(tmp_path)


def test_the_file_may_lie_at_home(tmp_path, monkeypatch):
    site = tmp_path / "html"
    site.mkdir()
    (site / "index.html").touch()
    browser = SimpleNamespace(launch=lambda **how: None)
    started = nullcontext(SimpleNamespace(chromium=browser))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LMBOOK_BUILD", str(tmp_path))
    monkeypatch.setattr("playwright.sync_api.sync_playwright", lambda: started)
    monkeypatch.setattr(paper, "find_chromium", lambda: "chromium")
    monkeypatch.setattr(paper, "print_pages", lambda *given: b"%PDF")
    monkeypatch.setattr("sys.argv", ["paper", "~/prints/book.pdf"])
    assert paper.main() == 0
    assert (tmp_path / "prints" / "book.pdf").read_bytes() == b"%PDF"
