"""Nothing stands between a page's text and its first picture."""

from docutils import nodes, utils

from lmbook.pages.first_screen import FirstScreen


def cell(name, output=None, **about):
    """Return a code cell as myst-nb leaves it."""
    source = nodes.container("", nodes.literal_block(name, name))
    source["nb_element"] = "cell_code_source"
    made = nodes.container("", source, nb_element="cell_code", cell_metadata=name, **about)
    if output:
        made += nodes.container("", output, nb_element="cell_code_output")
    return made


def told(*parts):
    """Return what stands on a page of these parts, in order, once it was put in order."""
    document = utils.new_document("page")
    inner = nodes.section("", nodes.title("", "more"))
    document += nodes.section("", nodes.title("", "title"), *parts, inner)
    FirstScreen(document).apply()
    leaves = (nodes.title, nodes.paragraph, nodes.literal_block, nodes.caption)
    return [n.astext() for n in document.findall(lambda n: isinstance(n, leaves))], document


def picture(words="picture"):
    return nodes.figure("", nodes.caption("", words))


def text(words="text"):
    return nodes.paragraph("", words)


def test_imports_and_drawing_come_after_the_picture_in_their_order():
    imports = cell("imports", hide_mode="input")
    draw = cell("draw", picture(), hide_mode="input")
    found, document = told(text(), imports, text("try"), draw, text("after"))
    assert found == ["title", "text", "try", "picture", "imports", "draw", "after", "more"]
    cells = [
        n for n in document.findall(nodes.container) if n.get("nb_element") == "cell_code"
    ]
    assert [c.get("hide_mode") for c in cells] == [None, "input", "input"]
    assert [c["cell_metadata"] for c in cells] == ["draw", "imports", "draw"]


def test_a_drawing_may_be_the_picture():
    found, _ = told(text(), cell("imports", hide_mode="input"), picture())
    assert found == ["title", "text", "picture", "imports", "more"]


def test_code_that_shows_something_stays_where_it_is():
    lesson = cell("lesson")
    prints = cell("prints", text("7"), hide_mode="input")
    found, _ = told(lesson, prints, cell("draw", picture()), cell("later"))
    assert found == ["title", "lesson", "prints", "7", "draw", "picture", "later", "more"]


def test_a_page_without_a_picture_is_as_it_was():
    found, _ = told(text(), cell("imports", hide_mode="input"))
    assert found == ["title", "text", "imports", "more"]
