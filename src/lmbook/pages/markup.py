"""Small parts of pages that several directives make."""

import re
from collections.abc import Callable, Iterable, Sequence

from docutils import nodes
from sphinx import addnodes


def with_code(text: str) -> list[nodes.Node]:
    """Return a sentence whose code stands between backticks."""
    parts = enumerate(re.split(r"`([^`]+)`", text))
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in parts]


def page_link(name: str, text: str, env) -> addnodes.pending_xref:
    """Return a reference to a page, for whatever is built."""
    about = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{name}"}
    about |= {"refexplicit": True, "refwarn": True, "refdoc": env.docname}
    return addnodes.pending_xref("", nodes.inline("", text), **about)


def html_table(css: str, columns: Sequence[str], rows: Iterable[tuple]) -> str:
    """Return a table of rows, each its attributes and its cells, all of it HTML.

    Each cell has its column's name, for narrow screens.
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = ""
    for about, cells in rows:
        pairs = zip(columns, cells, strict=True)
        told = "".join(f'<td data-label="{name}">{cell}</td>' for name, cell in pairs)
        body += f"<tr{about}>{told}</tr>\n"
    top = f'<table class="table {css}"><thead><tr>{head}</tr></thead>'
    return f"{top}<tbody>{body}</tbody></table>"


def html_tag(tag: str) -> tuple[Callable, Callable]:
    """Return how a node is written as an HTML element, with what it has as ``html``."""

    def visit(self, node: nodes.Element) -> None:
        self.body.append(self.starttag(node, tag, **node.get("html", {})))

    def depart(self, node: nodes.Element) -> None:
        self.body.append(f"</{tag}>\n")

    return visit, depart
