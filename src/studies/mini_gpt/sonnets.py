"""The GPT that read the Sonnets: ``sonnets.safetensors``, of which many chapters ask.

No question, no rivals: it makes a model, by the classic recipe with the changes below (the
corpus is small, hence dropout). Its record, the losses on the way and the SHA-256 of the
corpus among it, lies in the file.
"""

from lmcourse import train
from lmcourse.weights import read_record

CHAPTER = "mini-gpt"
CHECKPOINTS = ("sonnets",)
CHANGES = {"optimizer": "muon", "learning_rate": 0.01, "dropout": 0.2, "batch": 24}


def plan(small):
    """One training, of 2,000 steps; or of two, with few estimates."""
    few = {"steps": 2, "evaluate_every": 1, "validation_windows": 4, "warmup": 1}
    return [{"group": "runs", "changes": CHANGES | (few if small else {"steps": 2000})}]


def run(folder, group, changes):
    """Train from where an earlier run was stopped."""
    asked = ["--corpus", "sonnets", "--preset", "classic", "--resume"]
    for name, value in changes.items():
        asked += ["--set", f"{name}={value}"]
    path = folder / "sonnets.safetensors"
    asked += ["--out", str(folder / "run.safetensors"), "--export", str(path)]
    if train.main(asked):
        raise RuntimeError("the training of the Sonnets' GPT failed")
    return {"val_loss": read_record(path)["val_loss"]}
