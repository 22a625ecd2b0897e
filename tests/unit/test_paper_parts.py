"""The book on paper: where its title comes from."""

import pytest

from lmbook.pages.course import CourseError
from lmbook.publish.paper import book_title


def test_the_title_is_the_configurations(tmp_path):
    (tmp_path / "_config.yml").write_text("title: Poems & letters\nauthor: Nobody\n")
    assert book_title(tmp_path) == "Poems & letters"


@pytest.mark.parametrize("config", ["author: Nobody\n", "title:\n", ""])
def test_a_configuration_without_a_title_is_told_of(tmp_path, config):
    (tmp_path / "_config.yml").write_text(config)
    with pytest.raises(CourseError, match=r"_config\.yml has no title: write"):
        book_title(tmp_path)
