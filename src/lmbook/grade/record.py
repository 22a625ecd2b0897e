"""In a submission's kernel: keep every answer that is handed to a check, as it is then."""

import os
from pathlib import Path

import cloudpickle

from lmbook.grade.inside import FOLDER
from lmcourse import exercises

ANSWERS = Path(os.environ["HOME"]) / FOLDER


def recorded(check):
    """Return a check that keeps the answer before it looks at it."""

    def keep(name, answer):
        try:
            content = cloudpickle.dumps(answer)
        except Exception as error:  # what cannot be pickled is not handed in
            print(f"{name} cannot be handed in: {error}")
        else:
            ANSWERS.mkdir(exist_ok=True)
            (ANSWERS / str(name).encode().hex()).write_bytes(content)
        return check(name, answer)

    return keep


exercises.check = recorded(exercises.check)
