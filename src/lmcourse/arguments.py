"""What commands read from their command lines."""

import os
from pathlib import Path


def path_argument(text: str) -> Path:
    """Return the path that an argument names; ``~`` is the home folder.

    This is argparse's ``type=`` of a path. The shell puts the home folder in only where
    ``~`` stands unquoted at the beginning of a word: not in the Makefile's quotes, nor
    behind ``--option=``. A name behind ``~`` that no user has is taken as it is.
    """
    return Path(os.path.expanduser(text))  # `Path.expanduser` raises without such a user
