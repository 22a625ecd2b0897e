"""What a page teaches and what the package holds are the same code.

For each chapter below: every function and class that both the page and the module define
has the same syntax tree in both (docstrings, comments and type annotations aside), and
the names listed are there in both.
"""

import ast
import copy
import importlib
import inspect

import pytest

from chapters import definitions, page_definitions, parse_cells

# chapter, module, names that the page must arrive at. One line a module; a chapter may
# have several.
SAME = [
    (
        "attention",
        "lmcourse.attention",
        ["attention", "causal_mask", "padding_mask", "MultiHeadAttention"],
    ),
    (
        "embeddings",
        "lmcourse.embeddings",
        [
            "cooccurrence",
            "fix_signs",
            "mean_cosine",
            "neighbour_overlap",
            "neighbours",
            "ppmi",
            "principal_components",
            "unit",
            "word_vectors",
            "words",
        ],
    ),
    (
        "positional-encoding",
        "lmcourse.positions",
        [
            "alibi_bias",
            "alibi_slopes",
            "frequencies",
            "rotate",
            "sinusoidal",
        ],
    ),
    (
        "transformer-block",
        "lmcourse.transformer",
        ["Block", "FeedForward", "LayerNorm"],
    ),
    (
        "encoder-decoder",
        "lmcourse.transformer",
        ["Embed", "Stack"],
    ),
    ("sequences", "lmcourse.recurrent", ["LSTM"]),
    (
        "tokenization",
        "lmcourse.tokenization",
        [
            "byte_characters",
            "index_pairs",
            "merge_in_word",
            "merge_pair",
            "segment",
            "train_bpe",
        ],
    ),
    ("pretraining", "lmcourse.masking", ["mask_tokens"]),
    ("tokenization", "lmbook.bench.bpe", ["count_pairs", "naive_train_bpe"]),
    (
        "bert-internals",
        "lmcourse.bert",
        [
            "Bert",
            "BertOutput",
            "Embeddings",
            "head_measures",
            "rebuild",
            "rename",
        ],
    ),
    (
        "backpropagation",
        "lmcourse.numpy_nn.core",
        ["Adam", "Chain", "Concat", "Fork", "Identity"],
    ),
    (
        "backpropagation",
        "lmcourse.numpy_nn.layers",
        [
            "LayerNorm",
            "Linear",
            "OneHotDictionary",
            "ReLU",
            "SkipAddNorm",
            "Softmax",
            "SoftmaxCrossEntropy",
            "rows",
            "softmax",
        ],
    ),
    (
        "backpropagation",
        "lmcourse.numpy_nn.attention",
        ["CausalMask", "Rotary", "ScalarProduct", "Transpose"],
    ),
    (
        "backpropagation",
        "lmcourse.numpy_nn.decoder",
        ["Block", "Decoder", "FeedForward", "train", "windows"],
    ),
    (
        "dickinson-layers",
        "lmcourse.pooling",
        ["batches", "forward_hooks", "pool", "read", "step_similarity"],
    ),
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


@pytest.mark.parametrize(
    ("chapter", "module", "names"), SAME, ids=[f"{row[0]}-{row[1]}" for row in SAME]
)
def test_page_and_package_are_the_same_code(chapter, module, names):
    page, package = page_definitions(chapter), module_definitions(module)
    assert names, "list at least one name"
    assert not [name for name in names if name not in page], f"not in {chapter}.md"
    assert not [name for name in names if name not in package], f"not in {module}"
    for name in page.keys() & package.keys():
        assert tree(page[name]) == tree(package[name]), f"{name}: {chapter} and {module}"


def test_a_changed_line_is_seen_and_a_docstring_is_not():
    def one(source):
        return tree(definitions(source)["f"])

    plain = "def f(x):\n    return x / 2"
    assert one(plain) == one('def f(x):\n    """Halve."""\n    return x / 2  # half')
    assert one(plain) == one("def f(x: float) -> float:\n    return x / 2")
    assert one(plain) != one("def f(x):\n    return x / 3")
    assert one("class f:\n    def g(self):\n        return 1") != one(
        "class f:\n    def g(self):\n        return 2"
    )


PAGE = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3}
---

# Title

```{code-cell} python
:tags: [hide-input]

def f(): return 1
```

Text.

```{code-cell} python
---
tags: [hide-output]
---
def f(): return 2
```

```{exercise-start} Write it
:label: ex-some-thing
```
Write g.
```{exercise-end}
```

```{code-cell} python
def h(): return 3
```

```{exercise-start}
:label: ex-other
```

```{code-cell} python
def g(): ...
```

```{exercise-end}
```

```{solution-start} ex-other
:class: dropdown
```

```{code-cell} python
def g(): return 4
```

```{solution-end}
```
"""


def test_cells_know_their_exercise():
    cells = parse_cells(PAGE)
    assert [cell.part for cell in cells] == ["", "", "", "exercise", "solution"]
    assert [cell.exercise for cell in cells[3:]] == ["ex-other", "ex-other"]
    assert cells[0].tags == ("hide-input",)
    assert cells[1].tags == ("hide-output",)
    assert cells[4].source == "def g(): return 4"
