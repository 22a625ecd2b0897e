"""Nothing stands between a page's text and its first picture."""

from docutils import nodes, utils

from lmbook.pages.first_screen import FirstScreen


def cell(name, output=None, **attributes):
    """Return a code cell as myst-nb leaves it."""
    source = nodes.container("", nodes.literal_block(name, name))
    source["nb_element"] = "cell_code_source"
    node = nodes.container(
        "", source, nb_element="cell_code", cell_metadata=name, **attributes
    )
    if output:
        node += nodes.container("", output, nb_element="cell_code_output")
    return node


def put_in_order(*parts):
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
    drawing = cell("draw", picture(), hide_mode="input")
    texts, document = put_in_order(text(), imports, text("try"), drawing, text("after"))
    assert texts == ["title", "text", "try", "picture", "imports", "draw", "after", "more"]
    cells = [
        n for n in document.findall(nodes.container) if n.get("nb_element") == "cell_code"
    ]
    assert [c.get("hide_mode") for c in cells] == [None, "input", "input"]
    assert [c["cell_metadata"] for c in cells] == ["draw", "imports", "draw"]


def test_a_drawing_may_be_the_picture():
    texts, _ = put_in_order(text(), cell("imports", hide_mode="input"), picture())
    assert texts == ["title", "text", "picture", "imports", "more"]


def test_code_that_shows_something_stays_where_it_is():
    lesson = cell("lesson")
    prints = cell("prints", text("7"), hide_mode="input")
    texts, _ = put_in_order(lesson, prints, cell("draw", picture()), cell("later"))
    assert texts == ["title", "lesson", "prints", "7", "draw", "picture", "later", "more"]


def test_a_page_without_a_picture_is_as_it_was():
    texts, _ = put_in_order(text(), cell("imports", hide_mode="input"))
    assert texts == ["title", "text", "imports", "more"]
