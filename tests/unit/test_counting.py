"""Layers and heads count from 0: in prose, drawings, and what pages print and draw."""

import itertools
import json
import re

from lmbook.execute.keys import ROOT

PART = r"(?:[Ll]ayers?|[Bb]locks?|[Hh]eads?)"
SIX = "(?:[6-9]|1[0-1])"  # what the book's six-layer model has no layer of that number for
FAULTS = [
    rf"{PART} (?:are|is) (?:counted|numbered) from 1\b",
    rf"\b(?:first|lowest|bottom) {PART}(?:,| is| being|\s\()+ ?(?:{PART} |number )?1\b",
    rf"\b(?:second) {PART}(?:,| is| being|\s\()+ ?(?:{PART} |number )?2\b",
    r"hidden_states\[0\]`?,? (?:is|are|as|means?) (?:called )?layer 0\b",
    r"hidden_states\[(\w)\]`?,? (?:is|are|as|after) layer [`$]?\1\b(?! ?[-−])",
]
OF_SIX = rf"\b[Ll]ayer {SIX}\b"
DEEPER = ("models-you-talk-to", "talk-", "play")  # what is about a model of thirty layers
FAULT = re.compile("|".join([*FAULTS, OF_SIX]))
FAULT_OF_DEEPER = re.compile("|".join(FAULTS))
SAID = ("text/plain", "application/vnd.lmcourse.figure+json")


def sources():
    """Yield the name and the text of what a reader reads, pages print and figures show."""
    patterns = ["chapters/*.md", "chapters/_figures/*.svg", "docs/*.md"]
    for path in itertools.chain(*map(ROOT.glob, patterns)):
        yield path.name, path.read_text("utf-8")
    for path in ROOT.glob("tests/pages/notebooks/*.ipynb"):
        yield path.name, "\n".join(outputs(json.loads(path.read_text("utf-8"))))


def outputs(notebook):
    """Return what the cells of a notebook print, and the words of its figures."""
    for cell in notebook["cells"]:
        for output in cell["outputs"]:
            texts = [output.get("text", ""), *map(output.get("data", {}).get, SAID)]
            for text in filter(None, texts):
                yield text if isinstance(text, str) else json.dumps(text)


def test_nothing_is_counted_from_one():
    faults = [
        f"{name}: …{text[max(0, fault.start() - 30) : fault.end() + 30]}…"
        for name, text in sources()
        for fault in (FAULT_OF_DEEPER if name.startswith(DEEPER) else FAULT).finditer(text)
    ]
    assert not faults, "\n".join(faults)


FROM_ONE = """the first layer is layer 1
the first block being 1
Layers are counted from 1
`hidden_states[0]` is layer 0
`hidden_states[i]` is layer i
In layer 6 of the model"""
FROM_ZERO = """a six-layer model, its last layer is layer 5
`hidden_states[0]` is before layer 0
`hidden_states[i]` after layer i−1
(layers + 1, texts, d_model)
the first layer is broad
1 layer, 2 heads, twelve layers"""


def test_what_is_counted_from_one_is_found_and_nothing_else():
    assert [text for text in FROM_ONE.splitlines() if not FAULT.search(text)] == []
    assert [text for text in FROM_ZERO.splitlines() if FAULT.search(text)] == []
