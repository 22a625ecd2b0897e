"""The GPT that is trained on the Sonnets, ``sonnets.safetensors``, which many chapters use.

No question and no rivals: it makes a model, by the classic recipe with the changes below
(dropout, since the corpus is small). Its record is in the file, with the losses during
training and the SHA-256 of the corpus.
"""

from lmcourse import train
from lmcourse.weights import read_record

CHAPTER = "mini-gpt"
CHECKPOINTS = ("sonnets",)
CHANGES = {"optimizer": "muon", "learning_rate": 0.01, "dropout": 0.2, "batch": 24}


def plan(small):
    """Return the setting of the one run, a training of 2,000 steps.

    Parameters
    ----------
    small : bool
        Whether it has two steps and few estimates instead.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs"; ``changes``, the settings of
        the training that differ from the classic recipe, by name: Muon, a learning rate of
        0.01, dropout of 0.2, 24 windows a step.
    """
    few = {"steps": 2, "evaluate_every": 1, "validation_windows": 4, "warmup": 1}
    return [{"group": "runs", "changes": CHANGES | (few if small else {"steps": 2000})}]


def run(folder, group, changes):
    """Train the course's GPT on the sonnets; go on where an earlier run was stopped.

    Parameters
    ----------
    folder : Path
        Where its checkpoint, ``run.safetensors``, and the model, ``sonnets.safetensors``,
        are saved.
    group : {"runs"}
        The only kind of run; unused.
    changes : dict
        Settings of ``python -m lmcourse.train`` that differ from the classic recipe, by
        name, such as ``dropout``.

    Returns
    -------
    dict
        ``val_loss``, the last validation loss, in nats a character.

    Raises
    ------
    RuntimeError
        If the training failed.
    """
    arguments = ["--corpus", "sonnets", "--preset", "classic", "--resume"]
    for name, value in changes.items():
        arguments += ["--set", f"{name}={value}"]
    path = folder / "sonnets.safetensors"
    arguments += ["--out", str(folder / "run.safetensors"), "--export", str(path)]
    if train.main(arguments):
        raise RuntimeError("the training of the Sonnets' GPT failed")
    return {"val_loss": read_record(path)["val_loss"]}
