"""Names that code defines, and names that it uses."""

from lmbook.publish.names import defined_and_used


def test_names_that_code_defines_and_uses():
    source = "import a.b as c\nx = y\n\n\ndef f(z):\n    return z + g + x"
    assert defined_and_used(source) == ({"c", "x", "f"}, {"y", "g", "x"})
