"""Small parts of pages that several directives make."""

import re
from collections.abc import Callable

from docutils import nodes


def with_code(text: str) -> list[nodes.Node]:
    """Return a sentence whose code stands between backticks."""
    parts = enumerate(re.split(r"`([^`]+)`", text))
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in parts]


def ancestor(node: nodes.Node, kind: type) -> nodes.Node | None:
    """Return what a node stands in, or is, of a kind; None if nothing."""
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node


def html_tag(tag: str) -> tuple[Callable, Callable]:
    """Return how a node is written as an HTML element, with what it has as ``html``."""

    def visit(self, node: nodes.Element) -> None:
        self.body.append(self.starttag(node, tag, **node.get("html", {})))

    def depart(self, node: nodes.Element) -> None:
        self.body.append(f"</{tag}>\n")

    return visit, depart
