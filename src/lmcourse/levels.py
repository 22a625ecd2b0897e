"""What the levels of a BERT are called, from its word vectors to its last layer."""


def state_names(layers: int) -> list[str]:
    """Return the names of a model's hidden states: "before layer 0", "after layer 0", …

    ``layers`` is the number of its layers; there is one state more.
    """
    return ["before layer 0", *(f"after layer {layer}" for layer in range(layers))]


def level_names(layers: int) -> list[str]:
    """Return the names of all levels: "static", "before layer 0", "after layer 0", …

    Static are the rows of the table of word vectors. ``layers`` is the number of the
    model's layers; there are two levels more.
    """
    return ["static", *state_names(layers)]
