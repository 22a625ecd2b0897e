"""The model that the studies of this chapter begin with: a GPT that answers requests."""

from lmcourse.preferences import encode_dialogues, train_answers
from studies.preferences.preferences import ASKED, SETTINGS, dialogues_of


def answering_model(runs):
    """Return a copy of our GPT that has learned to answer requests, a GPT.

    A request, such as "(T)", asks for a line that begins with a letter; it is trained on
    lines of the training sonnets as answers, as in the study *preferences*.

    ``runs`` : Runs, whose GPT ``base``, ``tokenizer`` and ``seed`` are taken; its method
    ``part`` says how many of the steps a shorter run takes.
    """
    requests, answers = dialogues_of("training", ASKED)
    return train_answers(
        runs.base,
        encode_dialogues(runs.tokenizer, requests, answers),
        runs.part(SETTINGS["dialogue steps"]),
        batch=SETTINGS["batch"],
        seed=runs.seed,
    )
