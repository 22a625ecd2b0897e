"""Two ways to train a small GPT: the textbook's, and a fast one made of separate ideas.

``classic`` is what the configurations of `lmcourse.gpt.settings` have as defaults.
"""

from dataclasses import fields

from lmcourse.gpt.settings import GPTConfig, TrainingConfig

# What `fast` changes, one idea at a time: each can be left out, to see what it is worth.
IDEAS = {
    "ngrams": {"ngrams": (4096, 6144)},  # a table does what layers would learn slowly
    "rotary": {"positions": "rotary"},
    "small": {"layers": 2, "heads": 2, "d_model": 64},
    "muon": {"optimizer": "muon"},
    "hot": {"learning_rate": 2e-2, "warmup": 10},  # tables of vectors bear large steps
    "batch": {"batch": 24},
    "short": {"steps": 200},
}
PRESETS = {"classic": (), "fast": tuple(IDEAS)}

# What may be set: the fields of both configurations, save the first: a corpus decides it.
SIZES, HOW = (
    [field.name for field in fields(kind)] for kind in (GPTConfig, TrainingConfig)
)
SETTINGS = SIZES[1:] + HOW


def recipe(preset, vocab_size, without=(), /, **changes):
    """Return the configurations of a model and of its training.

    Parameters
    ----------
    preset : {"classic", "fast"}
    vocab_size : int
    without : iterable of str
        Names from `IDEAS` that ``fast`` shall do without.
    **changes
        Fields of `GPTConfig` and `TrainingConfig` to set otherwise.

    Returns
    -------
    model : GPTConfig
    training : TrainingConfig

    Raises
    ------
    ValueError
        If there is no such preset, no such idea in it, no such field, or a value is wrong.
    """
    if preset not in PRESETS:
        raise ValueError(f"there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    unknown = set(without) - set(PRESETS[preset])
    if unknown:
        raise ValueError(
            f"{preset} has no idea {', '.join(sorted(unknown))} to do without; it has "
            f"{', '.join(PRESETS[preset]) or 'none'}"
        )
    strangers = set(changes) - set(SETTINGS)
    if strangers:
        raise ValueError(
            f"there is no setting {', '.join(sorted(strangers))}; there are "
            f"{', '.join(SETTINGS)} (and the corpus decides on vocab_size)"
        )
    chosen = {"vocab_size": vocab_size}
    for idea in PRESETS[preset]:
        if idea not in without:
            chosen |= IDEAS[idea]
    chosen |= changes
    sizes = {name: chosen.pop(name) for name in SIZES if name in chosen}
    return GPTConfig(**sizes), TrainingConfig(**chosen)
