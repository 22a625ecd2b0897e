"""Sentences that stand in code or records, as nodes and as HTML."""

import pytest
from docutils import nodes

from lmbook.pages.markup import inline_html, inline_nodes


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "plain"),
        ("Of *When roses* the `sum`", "Of <em>When roses</em> the <code>sum</code>"),
        (
            "``page.close`` is of `close`",
            "<code>page.close</code> is of <code>close</code>",
        ),
        ("`a*b` and **all** 2 * 3", "<code>a*b</code> and <strong>all</strong> 2 * 3"),
        ("<b>1 & 2</b>", "&lt;b&gt;1 &amp; 2&lt;/b&gt;"),
    ],
)
def test_a_sentence_is_marked_in_the_same_way_as_nodes_and_as_html(text, html):
    tags = {nodes.emphasis: "em", nodes.literal: "code", nodes.strong: "strong"}

    def written(node):
        if isinstance(node, nodes.Text):
            escaped = node.astext().replace("&", "&amp;")
            return escaped.replace("<", "&lt;").replace(">", "&gt;")
        inside = "".join(map(written, node.children))
        return f"<{tags[type(node)]}>{inside}</{tags[type(node)]}>"

    assert inline_html(text) == html
    assert "".join(map(written, inline_nodes(text))) == html
