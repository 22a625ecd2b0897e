"""What views ask of lists of numbers, and the characters that they say were left out."""

import json

import pytest

from lmbook.publish import bundles, npm


def ask(name, expression):
    """Return what an expression gives; in it ``m`` is the view's module of this name."""
    module = bundles.view_files(".js")[name].as_uri()
    script = (
        f"import({json.dumps(module)}).then((m) => "
        f"console.log(JSON.stringify({expression})))"
    )
    return json.loads(npm.run("node", ["-e", script], f"{name}:"))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("m.argmax([1, 3, 3, 2])", 1),
        ("m.argmax([])", 0),
        ("m.largest([1, 3, 2, 3], 3)", [1, 3, 2]),
        ("m.largest(Float32Array.of(2, 1), 5)", [0, 1]),
        ("m.mean(Float64Array.of(1, 2, 6))", 3),
        (
            "(x => (m.rowOf(x, 1, 2).fill(9), [...x]))(Float32Array.of(1, 2, 3, 4))",
            [1, 2, 9, 9],
        ),
        (
            "(x => (m.copyOfRow(x, 1, 2).fill(9), [...x]))(Float32Array.of(1, 2, 3, 4))",
            [1, 2, 3, 4],
        ),
    ],
)
def test_of_equal_numbers_the_first_counts_and_a_row_shares_memory(expression, result):
    assert ask("numbers.js", expression) == result


def test_eight_characters_are_named_and_the_others_counted():
    ten = "Array.from('abcdefghij')"
    named = ask("text.js", f"[[], ['a'], {ten}].map(m.neverRead)")
    assert named == [
        "",
        "Left out, as it has never read them: a. ",
        "Left out, as it has never read them: a b c d e f g h and 2 more. ",
    ]
