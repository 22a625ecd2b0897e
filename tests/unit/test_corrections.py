"""What is corrected of the pages that Sphinx writes."""

from lmbook.pages.corrections import (
    correct_page,
    drop_viewport,
    join_marks,
    mark_citations,
)

VIEWPORT = '<meta name="viewport" content="width=device-width" />'


def test_a_list_of_citations_has_items():
    html = '<div role="list"><div role="doc-biblioentry">A. Author</div></div>'
    assert mark_citations(html) == (
        '<div role="list"><div role="listitem">A. Author</div></div>'
    )


def test_a_line_does_not_begin_with_the_mark_behind_a_formula():
    q = '<span class="math notranslate nohighlight">\\(q\\)</span>'
    assert join_marks(f"<p>a {q}, b</p>") == (
        f'<p>a <span class="lm-whole">{q},</span> b</p>'
    )
    assert join_marks(f"<p>({q}).</p>") == f'<p><span class="lm-whole">({q}).</span></p>'
    assert join_marks(f"<p>a {q} b</p>") == f"<p>a {q} b</p>"
    shown = '<div class="math notranslate nohighlight">\\[q\\]</div>.'
    assert join_marks(shown) == shown


def test_only_the_viewport_is_taken_away():
    author = '<meta name="author" content="viewport" />'
    assert drop_viewport(f"{author}{VIEWPORT}") == author


def test_a_page_without_text_is_corrected_too():
    context = {"metatags": VIEWPORT}
    correct_page(None, "search", "search.html", context, None)
    assert context == {"metatags": ""}
