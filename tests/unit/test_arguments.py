"""What commands read from their command lines."""

from pathlib import Path

import pytest

from lmcourse.arguments import path_argument


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("~/hand-ins", "HOME/hand-ins"),
        ("hand-ins", "hand-ins"),
        ("week-1/~", "week-1/~"),
        ("~no-user-has-this-name", "~no-user-has-this-name"),  # a folder may have it
        ("./~no-user-has-this-name", "~no-user-has-this-name"),
    ],
)
def test_home_is_put_in_where_a_user_is_meant(text, named, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path_argument(text) == Path(named.replace("HOME", str(tmp_path)))
