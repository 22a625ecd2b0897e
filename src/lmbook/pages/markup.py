"""Small parts of pages that several directives make."""

from collections.abc import Callable, Iterable, Sequence

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx import addnodes

_INLINE = MarkdownIt("zero").enable(["backticks", "emphasis"])


def inline_nodes(text: str) -> list[nodes.Node]:
    """Return a sentence as docutils' nodes.

    ``text`` : with `code`, *italics* and **bold** as in Markdown, and no other markup.
    """
    node = nodes.inline()
    for token in _INLINE.parseInline(text)[0].children:
        if token.type == "code_inline":
            node += nodes.literal(token.content, token.content)
        elif token.nesting == 1:
            node += nodes.strong() if token.type == "strong_open" else nodes.emphasis()
            node = node[-1]
        elif token.nesting == -1:
            node = node.parent
        else:
            node += nodes.Text(token.content)
    return node.children


def inline_html(text: str) -> str:
    """Return a sentence as HTML.

    ``text`` : with `code`, *italics* and **bold** as in Markdown; all else is escaped.
    """
    return _INLINE.renderInline(text)


def page_link(name: str, text: str, env) -> addnodes.pending_xref:
    """Return a reference to a page of the book, which Sphinx resolves.

    Parameters
    ----------
    name : str
        The page's, its file below ``chapters`` without the suffix.
    text : str
        What the link says.
    env : BuildEnvironment
        Sphinx's, of the page in which the link stands.
    """
    attributes = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{name}"}
    attributes |= {"refexplicit": True, "refwarn": True, "refdoc": env.docname}
    return addnodes.pending_xref("", nodes.inline("", text), **attributes)


def html_table(css: str, columns: Sequence[str], rows: Iterable[tuple]) -> str:
    """Return a table as HTML; each cell has its column's name, for narrow screens.

    Parameters
    ----------
    css : str
        A class for it, such as "lm-tasks".
    columns : sequence of str
        Their names.
    rows : iterable of (str, sequence of str)
        Of each row its attributes, "" or such as ``' class="x"'``, and its cells, in HTML.
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = ""
    for attributes, cells in rows:
        pairs = zip(columns, cells, strict=True)
        row = "".join(f'<td data-label="{name}">{cell}</td>' for name, cell in pairs)
        body += f"<tr{attributes}>{row}</tr>\n"
    top = f'<table class="table {css}"><thead><tr>{head}</tr></thead>'
    return f"{top}<tbody>{body}</tbody></table>"


def html_tag(tag: str) -> tuple[Callable, Callable]:
    """Return the two functions by which Sphinx writes a node as an HTML element.

    ``tag`` : the element's name, such as "details". One function begins the element, with
    the attributes that the node has as ``html``; the other ends it.
    """

    def visit(self, node: nodes.Element) -> None:
        """Write the element's opening tag; ``self`` is Sphinx's writer of HTML."""
        self.body.append(self.starttag(node, tag, **node.get("html", {})))

    def depart(self, node: nodes.Element) -> None:
        """Write its closing tag; ``self`` is Sphinx's writer of HTML."""
        self.body.append(f"</{tag}>\n")

    return visit, depart
