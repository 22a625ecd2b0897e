"""What a page teaches and what the package holds are the same code.

For each chapter below: every function and class that both the page and the module define
has the same syntax tree in both (docstrings, comments and type annotations aside), and
there are as many of them as the list says.
"""

import ast
import copy
import importlib
import inspect

import pytest

from chapters import definitions, page_definitions

# Chapter, module, how many names the page arrives at. A chapter may have several modules.
SAME = [
    ("attention", "lmcourse.attention", 4),
    ("embeddings", "lmcourse.embeddings", 4),
    ("positional-encoding", "lmcourse.positions", 5),
    ("transformer-block", "lmcourse.transformer", 3),
    ("encoder-decoder", "lmcourse.transformer", 2),
    ("sequences", "lmcourse.recurrent", 1),
    ("tokenization", "lmcourse.tokenization", 2),
    ("pretraining", "lmcourse.masking", 1),
    ("bert-internals", "lmcourse.bert", 5),
    ("backpropagation", "lmcourse.numpy_nn.core", 2),
    ("backpropagation", "lmcourse.numpy_nn.layers", 5),
    ("backpropagation", "lmcourse.numpy_nn.attention", 1),
    ("backpropagation", "lmcourse.numpy_nn.decoder", 3),
    ("dickinson-layers", "lmcourse.pooling", 1),
    ("beyond-text", "lmcourse.vision", 2),
    ("beyond-text", "lmcourse.graphs", 1),
    ("embeddings", "studies.embeddings.shown", 4),
    ("encoder-decoder", "lmcourse.dates", 1),
    ("tokenization", "studies.tokenization.shown", 2),
]


def tree(node: ast.AST) -> str:
    """Return the syntax tree as text, without docstrings, annotations and positions."""
    node = copy.deepcopy(node)
    holders = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for inner in ast.walk(node):
        if isinstance(inner, holders) and ast.get_docstring(inner) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            inner.returns = None
        if isinstance(inner, ast.arg):
            inner.annotation = None
    return ast.dump(node, indent=1)


def module_definitions(module: str) -> dict[str, ast.AST]:
    return definitions(inspect.getsource(importlib.import_module(module)))


@pytest.mark.parametrize(("chapter", "module", "count"), SAME)
def test_page_and_package_are_the_same_code(chapter, module, count):
    page, package = page_definitions(chapter), module_definitions(module)
    both = page.keys() & package.keys()
    assert len(both) == count, f"in {chapter}.md and in {module}: {sorted(both)}"
    for name in both:
        assert tree(page[name]) == tree(package[name]), f"{name}: {chapter} and {module}"


def test_a_changed_line_is_seen_and_a_docstring_is_not():
    def one(source):
        return tree(definitions(source)["f"])

    plain = "def f(x):\n    return x / 2"
    assert one(plain) == one('def f(x: int):\n    """Halve."""\n    return x / 2  # half')
    assert one(plain) != one("def f(x):\n    return x / 3")
