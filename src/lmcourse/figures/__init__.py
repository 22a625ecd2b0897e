"""What the chapters draw, one module a chapter: data in, figure out.

A page calls ``figures.attention.heads(weights, tokens)`` in one to three lines; caption,
name and alternative text stand in the page. Styles and what views share are in
`lmcourse.views`.
"""
