"""How a notebook names the authors of a work."""

import pytest
from pybtex.database import parse_string

from lmbook.publish.links import author_names


@pytest.mark.parametrize(
    ("authors", "named"),
    [
        ("Levy, Omer and Goldberg, Yoav", "Levy and Goldberg"),
        ("Ben Allal, Loubna and Lozhkov, Anton and Bakouch, Elie", "Ben Allal et al."),
        ("van der Maaten, Laurens", "van der Maaten"),
        ("{OpenAI}", "OpenAI"),
    ],
)
def test_names_of_several_words_keep_their_spaces(authors, named):
    text = f"@article{{work, author = {{{authors}}}, title = {{A title}}}}"
    assert author_names(parse_string(text, "bibtex").entries["work"]) == named
