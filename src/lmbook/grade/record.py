"""In a submission's kernel: keep every answer that is handed to a check, as it is then."""

import os
from pathlib import Path

import cloudpickle

from lmbook.grade.inside import FOLDER
from lmcourse import exercises

ANSWERS = Path(os.environ["HOME"]) / FOLDER


_check = exercises.check


def check(name, answer):
    """Keep the answer before the check looks at it."""
    try:
        content = cloudpickle.dumps(answer)
    except Exception as error:  # what cannot be pickled is not handed in
        print(f"{name} cannot be handed in: {error}")
    else:
        ANSWERS.mkdir(exist_ok=True)
        (ANSWERS / str(name).encode().hex()).write_bytes(content)
    return _check(name, answer)


exercises.check = check
