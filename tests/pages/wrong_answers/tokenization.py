"""What goes wrong in the exercises of *tokenization*, diagnosis → answer."""

FIVE = ["recordless", "overtakelessness", "unlovely", "crumbless", "brooding"]


def packed(lengths, context, *, taken=2, strict=False, forget=False, empty=False):
    """Fill windows one after the other, with what people get wrong."""
    windows, window, size = [], [], 0
    for stanza, length in enumerate(lengths):
        full = (
            size + length >= context - taken if strict else size + length > context - taken
        )
        if full and (window or empty):
            windows.append(window)
            window, size = [], 0
        window.append(stanza)
        size += length
    return windows if forget or not window else [*windows, window]


def pack_the_lengths(lengths, context):
    return [[lengths[stanza] for stanza in window] for window in packed(lengths, context)]


def pack_the_small_ones_first(lengths, context):
    order = sorted(range(len(lengths)), key=lambda stanza: lengths[stanza])
    windows = packed([lengths[stanza] for stanza in order], context)
    return [[order[stanza] for stanza in window] for window in windows]


def pack_all(lengths, context):
    return [[*range(len(lengths))]] if lengths else []


def pack_one_each(lengths, context):
    return [[stanza] for stanza in range(len(lengths))]


def complete(pieces):
    """Show what is whole, the longest beginning that can be decoded."""
    shown, got, data = [], "", b""
    for piece in pieces:
        data += piece
        ends = [end for end in range(len(data) + 1) if _decodes(data[:end])]
        shown.append(data[: ends[-1]].decode()[len(got) :])
        got += shown[-1]
    return shown


def _decodes(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


WRONG = {
    "joined_by_replace": {
        "both give": [
            (("t", "a", "l", "l"), ("a", "l")),
            (["a", "a", "a"], ["a", "a"]),
            (("x",), ("a", "l")),
            ((), ("a", "l")),
        ],
        "two tuples of strings": [("a", "b", "c"), "ab", 7],
        "a list of strings is expected": [("ta l", "a l"), (("a", "b"), "ab")],
        "a pair is two": (("a", "b"), ("a", "b", "c")),
        "without spaces": [(("t a", "l"), ("a", "l")), (("a", ""), ("a", "l"))],
    },
    "seams": {
        "at night": [[*FIVE, "nightingale"], ["Nightingale "]],
        "all of them have to be": [[*FIVE, "unsifted"]],
        "inside the stem": [["feathered"], ["lonesome"], ["recordless", "degreeless"]],
        "more of the ten": [FIVE[:4], ["brooding"]],
        "the list is empty": [[]],
        "not among the ten": [["bee"], ["record · less"]],
    },
    "pack": {
        "last window was forgotten": lambda n, c: packed(n, c, forget=True),
        "not their lengths": pack_the_lengths,
        "in the order of the text": pack_the_small_ones_first,
        "an empty window": lambda n, c: packed(n, c, empty=True),
        "[CLS] and [SEP]": lambda n, c: packed(n, c, taken=0),
        "more than the model takes": pack_all,
        "fewer windows would do": [
            pack_one_each,
            lambda n, c: packed(n, c, strict=True),
            lambda n, c: packed(n, c, taken=4),
        ],
        "a list of windows": [lambda n, c: [*range(len(n))], lambda n, c: 3],
    },
    "vocabulary": {
        "256 bytes": 1664,
        "for the Sonnets": 768,
        "from the poems themselves": 1152,
        "cut at white space": 1792,
        "steps of 128": 1919,
        "still cost more": 1280,
        "not the smallest": 2048,
    },
}

RIGHT = {
    "stream": [complete],
    "joined_by_replace": [
        (("a", "ll", "y"), ("a", "l")),
        [["ta", "l"], ["a", "l"]],
        (("x", "a", "lx"), ("a", "l")),
    ],
    "seams": [[word.title() for word in reversed(FIVE)], (*FIVE, *FIVE)],
    "pack": [lambda lengths, context: tuple(map(tuple, packed(lengths, context)))],
    "vocabulary": [1920.0],
}

NONSENSE = {
    "joined_by_replace": [
        (("q", "z"), ("x", "v")),
        (("", ""), ("", "")),
        (("l", "a", "t"), ("l", "a")),
    ]
}
