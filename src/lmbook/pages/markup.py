"""Small parts of pages that several directives make."""

import re
from collections.abc import Callable

from docutils import nodes


def with_code(text: str) -> list[nodes.Node]:
    """Return a sentence whose code stands between backticks."""
    parts = enumerate(re.split(r"`([^`]+)`", text))
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in parts]


def html_tag(tag: str) -> tuple[Callable, Callable]:
    """Return how a node is written as an HTML element, with what it has as ``html``."""

    def visit(self, node: nodes.Element) -> None:
        self.body.append(self.starttag(node, tag, **node.get("html", {})))

    def depart(self, node: nodes.Element) -> None:
        self.body.append(f"</{tag}>\n")

    return visit, depart
