"""MyST turned into plain Markdown, for notebooks that Colab and JupyterLab show bare.

Sphinx understands directives and roles; a notebook's reader sees their source. Each one
that the chapters use is rewritten here; one that is not known is an error, so that none
reaches a reader. What only the built book knows, ``links`` tells: `lmbook.publish.links`.
"""

import re
from dataclasses import dataclass, field

from lmbook.pages.choices import LETTERS
from lmbook.pages.tasks import WORDS

__all__ = ["Directive", "parse", "solutions", "to_markdown"]

_FENCE = re.compile(r"^ *(`{3,}|~{3,}|:{3,}(?=\{))(?:\{([\w:-]+)\}[ \t]*(.*))?")
_OPTION = re.compile(r"^:([\w-]+):[ \t]*(.*)$")
_ROLE = re.compile(r"(?<![\w\\`])\{([\w:-]+)\}(`+)(.+?)\2", re.DOTALL)
_LABEL = re.compile(r"^\(([\w:-]+)\)=\s*$", re.MULTILINE)
_EQUATION = re.compile(r"\$\$(.+?)\$\$[ \t]*(?:\(([\w:-]+)\))?", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((#[\w:-]+|[\w./-]+\.md(?:#[\w:-]+)?)\)")
_CODE = re.compile(
    r"(^ *(`{3,}|~{3,}).*?^ *\2[ \t]*$|(?<!`)(`+)(?!`).+?(?<!`)\3(?!`))", re.M | re.S
)
_SOLUTION = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{solution-(?P<edge>start|end)\}.*?^(?P=fence) *$", re.M | re.S
)
_MATH = re.compile(r"(?<![\\$])\$[^$\n]+\$")
# Forms of MyST that a bare notebook would show as they are written, or not at all.
_UNKNOWN = re.compile(
    r"""\{\{.*?\}\}                # a substitution
    | \[\^[\w-]+\]                # a footnote
    | (?<=[\])])\{(?:[.#][\w-]|\w+=).*?\}  # attributes
    | ^:\ +\S                     # a definition
    | ^%.*                        # a comment
    | </?(?:div|span|iframe|script|style)\b
    | !\[[^\]]*\]\((?!https?:)     # a picture beside the source
    """,
    re.MULTILINE | re.VERBOSE,
)


@dataclass
class Directive:
    """A directive of MyST: its name, the rest of its first line, options and lines."""

    name: str
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)


def parse(text: str) -> list[str | Directive]:
    """Cut text into lines and directives, a listing being one; bodies stay unparsed.

    Raises
    ------
    ValueError
        If nothing closes a block.
    """
    lines, parts = text.split("\n"), []
    while lines:
        fence = _FENCE.match(lines[0])
        if fence is None:
            parts.append(lines.pop(0))
            continue
        end = _closing(lines, fence[1])
        body, options = lines[1:end], {}
        while fence[2] and body and (option := _OPTION.match(body[0])):
            options[option[1]] = option[2].strip()
            del body[0]
        if fence[2]:
            parts.append(Directive(fence[2], fence[3].strip(), options, body))
        else:  # a listing: nothing in it is ours
            parts.append(Directive("listing", body=lines[: end + 1]))
        del lines[: end + 1]
    return parts


def _closing(lines: list[str], fence: str) -> int:
    """Return the line that closes the fence which the first line opens."""
    mark = re.compile(rf"^ *{re.escape(fence[0])}{{{len(fence)},}} *$")
    for index, line in enumerate(lines[1:], 1):
        if mark.match(line):
            return index
    raise ValueError(f"nothing closes the block opened by {lines[0]!r}")


def to_markdown(text: str, links) -> str:
    """Turn MyST into Markdown without directives, roles or labels.

    Raises
    ------
    ValueError
        At a directive, a role or another form of MyST that is not known here, naming it.
    """
    out, plain = [], []
    for part in [*parse(text), None]:
        if isinstance(part, str):
            plain.append(part)
            continue
        out.append(_inline("\n".join(plain), links))
        plain = []
        if part is not None:
            out.append(_block(part, links))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def solutions(text: str, inside: bool) -> list[tuple[bool, str]]:
    """Cut MyST where a solution begins or ends.

    Parameters
    ----------
    text : str
    inside : bool
        Whether the text begins in a solution.

    Returns
    -------
    list of (bool, str)
        Whether a piece is in a solution, and the piece. The line that begins a solution
        is outside it, since it is not folded.
    """
    pieces, last = [], 0
    for edge in _SOLUTION.finditer(text):
        begins = edge["edge"] == "start"
        pieces.append((inside, text[last : edge.end() if begins else edge.start()]))
        last, inside = edge.end(), begins
    pieces.append((inside, text[last:]))
    return pieces


# --- directives -----------------------------------------------------------------------


def _block(directive: Directive, links) -> str:
    """Return a directive as Markdown."""
    argument, label = directive.argument, directive.options.get("label", "")
    place = f'<a id="{label}"></a>\n\n' if label else ""
    match directive.name:
        case "listing":
            return "\n".join(directive.body)
        case "exercise-end" | "solution-end":
            return ""
        case "exercise-start":
            kind = WORDS.get(directive.options.get("class"))
            heading = f"{kind} · " if kind else ""
            return f"{place}**{heading}{links.exercise(label)}**\n"
        case "solution-start":
            return f"{place}**Solution to** {links.reference(argument, None)}, folded.\n"
        case "deeper-start":
            return f"\n***\n\n**Going deeper: {_inline(argument, links)}**\n"
        case "deeper-end":
            return "\n***\n"
        case "math":
            return _display("\n".join(directive.body), label, links)
        case "code-block":
            return "\n".join([f"```{argument}", *directive.body, "```"])
    return _with_body(directive, to_markdown("\n".join(directive.body), links), links)


def _with_body(directive: Directive, body: str, links) -> str:
    """Return a directive that holds more MyST, given that as Markdown."""
    argument = directive.argument
    match directive.name:
        case "drawing":
            label = directive.options["name"]
            caption = f'<a id="{label}"></a>{links.number(label)}. {body.strip()}'
            return f"{links.drawing(argument)}\n\n{caption}\n"
        case "choices":
            name = links.check(argument)
            check = f'\n\nCheck a letter: `exercises.check("{name}", "a")`.'
            return _lettered(body) + (check if name else "")
        case "dropdown":
            summary = _inline(argument, links)
            return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
        case "note" | "tip" | "warning" | "admonition":
            title = (_inline(argument, links) or directive.name.capitalize()).rstrip(".")
            quoted = f"**{title}.** {body.strip()}".split("\n")
            return "\n".join(["", *(f"> {line}".rstrip() for line in quoted), ""])
    raise ValueError(f"no plain Markdown is known for the directive {{{directive.name}}}")


def _lettered(text: str) -> str:
    """Turn a list of choices into paragraphs with letters, without what a click tells."""
    options = re.split(r"^- +", text.strip(), flags=re.MULTILINE)[1:]
    asked = [re.split(r"\n\n|\s—\s", option)[0] for option in options]
    pairs = zip(LETTERS, asked, strict=False)
    return "\n\n".join(f"**{letter}.** {words.strip()}" for letter, words in pairs)


def _display(formula: str, label: str, links) -> str:
    tag = f" \\tag{{{links.equation(label)}}}" if label else ""
    return f"$$\n{formula.strip()}{tag}\n$$"


# --- roles and links ------------------------------------------------------------------


def _inline(text: str, links) -> str:
    """Rewrite labels, equations, roles and links, wherever no code is.

    Roles are code to a Markdown parser, so they go first, into placeholders that what
    follows does not touch.
    """
    kept: list[str] = []

    def keep(rewritten: str) -> str:
        kept.append(rewritten)
        return f"\x00{len(kept) - 1}\x00"

    text = _ROLE.sub(lambda role: keep(_role(role[1], role[3], links)), text)
    text = _CODE.sub(lambda code: keep(code[0]), text)
    text = _EQUATION.sub(lambda m: keep(_display(m[1], m[2] or "", links)), text)
    text = _LABEL.sub(lambda label: f'<a id="{label[1]}"></a>', text)
    unknown = _UNKNOWN.search(_MATH.sub("", text))
    if unknown:
        raise ValueError(f"no plain Markdown is known for {unknown[0]!r}")
    text = _LINK.sub(lambda link: links.page(link[2], link[1]), text)
    while "\x00" in text:
        text = re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m[1])], text)
    return text


def _role(name: str, content: str, links) -> str:
    titled = re.fullmatch(r"(.+?)\s*<(.+)>", content, re.DOTALL)
    text, target = titled.groups() if titled else (None, content)
    match name:
        case "ref" | "doc":
            return links.reference(target, text)
        case "numref":
            return links.number(target)
        case "eq":
            return f"({links.equation(target)})"
        case "term":
            return f"*{text or target}*"
        case "cite":
            return links.cite(content, in_sentence=False)
        case "cite:t":
            return links.cite(content, in_sentence=True)
        case "glue:text":
            return links.glue(*content.partition(":")[::2])
    raise ValueError(f"no plain Markdown is known for the role {{{name}}}")
