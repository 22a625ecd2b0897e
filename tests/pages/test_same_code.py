"""What a page teaches and what the package holds are the same code.

For each chapter below: every function and class that both the page and the module define
has the same syntax tree in both (docstrings, comments and type annotations aside). Those
that the list names are in both: one that the page or the module calls otherwise is seen.
"""

import ast
import copy
import importlib
import inspect

import pytest

from chapters import definitions, page_definitions

# Chapter, module, names that are in both at least. A chapter may have several modules.
SAME = [
    (
        "attention",
        "lmcourse.attention",
        {"MultiHeadAttention", "attention", "causal_mask", "padding_mask"},
    ),
    ("embeddings", "lmcourse.embeddings", {"cooccurrence", "neighbours", "ppmi", "unit"}),
    (
        "positional-encoding",
        "lmcourse.positions",
        {"alibi_bias", "frequencies", "rotate", "sinusoidal", "turn_pairs"},
    ),
    ("transformer-block", "lmcourse.transformer", {"Block", "FeedForward", "LayerNorm"}),
    ("encoder-decoder", "lmcourse.transformer", {"Embed", "Stack"}),
    ("sequences", "lmcourse.recurrent", {"LSTM"}),
    ("tokenization", "lmcourse.tokenization", {"byte_characters", "merge_pair"}),
    ("pretraining", "lmcourse.masking", {"mask_tokens"}),
    (
        "bert-internals",
        "lmcourse.bert",
        {"Bert", "BertOutput", "Embeddings", "rebuild", "rename"},
    ),
    ("backpropagation", "lmcourse.numpy_nn.core", {"Chain", "Fork"}),
    (
        "backpropagation",
        "lmcourse.numpy_nn.layers",
        {"Linear", "SkipAddNorm", "Softmax", "rows", "softmax"},
    ),
    ("backpropagation", "lmcourse.numpy_nn.attention", {"CausalMask"}),
    ("backpropagation", "lmcourse.numpy_nn.decoder", {"Block", "Decoder", "train_decoder"}),
    ("dickinson-layers", "lmcourse.pooling", {"nearest"}),
    ("beyond-text", "lmcourse.vision", {"VisionTransformer", "patches"}),
    ("beyond-text", "lmcourse.graphs", {"edge_bias"}),
    (
        "embeddings",
        "studies.embeddings.shown",
        {"SkipGram", "skip_gram_loss", "train_skip_gram", "word_pairs"},
    ),
    ("encoder-decoder", "lmcourse.dates", {"Transformer"}),
    ("tokenization", "studies.tokenization.shown", {"count_pairs", "naive_train_bpe"}),
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


@pytest.mark.parametrize(("chapter", "module", "names"), SAME)
def test_page_and_package_are_the_same_code(chapter, module, names):
    page, package = page_definitions(chapter), module_definitions(module)
    both = page.keys() & package.keys()
    assert names <= both
    for name in both:
        assert tree(page[name]) == tree(package[name]), f"{name}: {chapter} and {module}"


def test_a_changed_line_is_seen_and_a_docstring_is_not():
    def one(source):
        return tree(definitions(source)["f"])

    plain = "def f(x):\n    return x / 2"
    assert one(plain) == one('def f(x: int):\n    """Halve."""\n    return x / 2  # half')
    assert one(plain) != one("def f(x):\n    return x / 3")
