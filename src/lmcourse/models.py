"""The models of the course: what a page imports to have one.

`load_bert` and `load_gpt2_vocabulary` read what packages carry and what ``LMCOURSE_BERT``
names, `trained` what a study left behind; a GPT is loaded by `lmcourse.gpt.checkpoints`,
the model that talks by `lmcourse.llama`. `pick_device` and `one_thread` say where and on
how many threads they compute.
"""

from lmcourse.bert_checkpoint import default_checkpoint, load_bert
from lmcourse.data import corpora_folder
from lmcourse.devices import one_thread, pick_device
from lmcourse.gpt2_vocabulary import load_gpt2_vocabulary
from lmcourse.hub import resolve_checkpoint
from lmcourse.weights import load_model

__all__ = [
    "default_checkpoint",
    "load_bert",
    "load_gpt2_vocabulary",
    "one_thread",
    "pick_device",
    "resolve_checkpoint",
    "trained",
]


def trained(name, build):
    """Load a model that a study trained and left in ``data/checkpoints``.

    Parameters
    ----------
    name : str
        Of the file, without ``.safetensors``.
    build : callable
        Called without arguments, it returns a new model, whose weights are replaced: a
        class such as `lmcourse.vision.VisionTransformer`, or a function.

    Returns
    -------
    nn.Module
        In evaluation mode, on the CPU. Its weights are frozen.

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole, or its weights are not those of the
        model.
    """
    path = corpora_folder() / "checkpoints" / f"{name}.safetensors"
    return load_model(path, build, 1).requires_grad_(False)
