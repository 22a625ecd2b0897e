"""What the build puts around a chapter: its name, a line at its top, its end."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from lmbook.pages.course import Chapter, next_chapters, read_course
from lmbook.pages.markup import page_link

FAMOUS = "famous"  # the page that every chapter's end leads to, if the course has it


def _chapter_line(
    chapter: Chapter, builds_on: list[Chapter], app: Sphinx
) -> nodes.paragraph:
    """Return the line under a chapter's title: how long it takes, and what it builds on.

    It is such as "25 minutes to read · 90 to work through · builds on Tokens", with links.

    Parameters
    ----------
    chapter : Chapter
        Its ``minutes`` is a dict with ``read`` and ``work``, int.
    builds_on : list of Chapter
        Each with ``name``, its page's, and ``short``, what the link says.
    app : Sphinx
        Its environment says where their pages are.
    """
    times = "{read} minutes to read · {work} to work through".format(**chapter.minutes)
    line = nodes.paragraph("", times, classes=["course-line"])
    for index, other in enumerate(builds_on):
        link = page_link(other.name, other.short, app.env)
        line += [nodes.Text(", " if index else " · builds on "), link]
    return line


def _chapter_list(label: str, chapters: list[Chapter], app: Sphinx) -> nodes.container:
    """Return a row of a page's end: a label, and a list of links to chapters.

    Behind each link stands the chapter's title, a question. ``label`` is such as "Read
    next"; ``chapters`` have ``name``, ``short`` and ``title``; ``app`` is Sphinx's.
    """
    items = nodes.bullet_list(classes=["course-chapters"])
    for chapter in chapters:
        name = nodes.strong("", "", page_link(chapter.name, chapter.short, app.env))
        question = nodes.inline("", chapter.title, classes=["course-question"])
        words = nodes.paragraph("", "", name, nodes.Text(" "), question)
        items += nodes.list_item("", words)
    head = nodes.paragraph("", label, classes=["course-label"])
    return nodes.container("", head, items, classes=["course-row"])


def add_frame(app: Sphinx, doctree: nodes.document) -> None:
    """Give a chapter its line and its end, and cross references its short name.

    The line below its title says how long it takes and what it builds on. Its end has how
    many statements were checked (which `lmbook.pages.proofs` put last), the chapters that
    it builds on and those to read next, and a link to the page of famous findings. Links to
    it from elsewhere then say its short name, the title of its window its number and
    question.

    Sphinx calls this when a page has been read; ``doctree`` is the page, changed in place.
    One that is no chapter stays as it is.
    """
    name, chapters = app.env.docname, app.config.lmbook_chapters
    if name not in chapters:
        return
    chapter = chapters[name]
    section = next(doctree.findall(nodes.section))
    builds_on = [chapters[other] for other in chapter.builds_on]
    title = section.first_child_matching_class(nodes.title)
    section.insert(title + 1, _chapter_line(chapter, builds_on, app))
    end = nodes.container(classes=["course-end"])
    if "lm-checked" in section[-1].get("classes", []):  # of `lmbook.pages.proofs`
        end += section.pop()
    rows = {"Builds on": builds_on, "Read next": next_chapters(name, chapters)}
    for label, others in rows.items():
        if others:
            end += _chapter_list(label, others, app)
    if FAMOUS in app.env.found_docs:
        link = page_link(FAMOUS, "Famous findings, tested here", app.env)
        label = nodes.Text(
            "Do other people's findings hold for the models of this book? See "
        )
        end += nodes.paragraph("", "", label, link, nodes.Text("."))
    section += end
    # Pages before and after it call it by its short name; its own window has the question.
    app.env.titles[name] = nodes.title("", chapter.short)
    app.env.longtitles[name] = nodes.title("", chapter.with_number(chapter.title))
    labels = app.env.get_domain("std").labels
    for label, (page, anchor, _) in list(labels.items()):
        if page == name and anchor in section["ids"]:
            labels[label] = (page, anchor, chapter.short)


def _read_front_matter(app: Sphinx, config: Config) -> None:
    """Read the chapters' front matter into the configuration, as ``lmbook_chapters``.

    That is a dict, name → `Chapter`, in the order of the book. Their short names go into
    ``config.external_site_map``, where Sphinx looks for the names of the sidebar.
    """
    config.lmbook_chapters = read_course(Path(app.srcdir).parent)
    for name, chapter in config.lmbook_chapters.items():
        config.external_site_map[name].title = chapter.short


def setup(app: Sphinx) -> None:
    """Have Sphinx read the chapters' front matter, and give each its line and its end.

    The former when it has read the table of contents, the latter when it has read a page.
    """
    app.add_config_value("lmbook_chapters", {}, "env", [dict])  # another: all anew
    app.connect("config-inited", _read_front_matter, priority=950)
    app.connect("doctree-read", add_frame, priority=600)
    app.add_css_file("lib/frame.css")
