"""A program has the same hash under other names, and in every version of Python."""

from types import CodeType

import pytest

from studies import depends

# What is renamed → a program, and the same program with another name.
SAME = {
    "a variable": ("def f(x):\n  y = x\n  return y", "def f(x):\n  z = x\n  return z"),
    "two variables that change names": (
        "def f(x):\n  a = x\n  b = a + 1\n  return a - b",
        "def f(x):\n  b = x\n  a = b + 1\n  return b - a",
    ),
    "of a loop": (
        "def f(x):\n  for i, (j, *k) in x:\n    print(i, j, k)",
        "def f(x):\n  for a, (b, *c) in x:\n    print(a, b, c)",
    ),
    "of a with": (
        "def f(x):\n  with x as a: return a",
        "def f(x):\n  with x as b: return b",
    ),
    "of a comprehension": ("y = [a for a in x if a]", "y = [b for b in x if b]"),
    "of a comprehension over what has its name": (
        "def f(x):\n  a = x\n  return {a: 1 for a in a}",
        "def f(x):\n  b = x\n  return {b: 1 for b in b}",
    ),
    "seen by a function inside": (
        "def f(x):\n  a = x\n  def g(n=a):\n    return a + n\n  return g",
        "def f(x):\n  b = x\n  def g(n=b):\n    return b + n\n  return g",
    ),
    "of a method": (
        "class C:\n  a = 1\n  def f(self):\n    a = self.a\n    return a",
        "class C:\n  a = 1\n  def f(self):\n    b = self.a\n    return b",
    ),
    "deleted": ("def f():\n  a = 1\n  del a", "def f():\n  b = 1\n  del b"),
}
# What is renamed → a program, and one that does something else, or may be called otherwise.
OTHER = {
    "a parameter": ("def f(x): return x", "def f(y): return y"),
    "another variable": (
        "def f(x):\n  a = x\n  b = x + 1\n  return a",
        "def f(x):\n  a = x\n  b = x + 1\n  return b",
    ),
    "a global": ("def f():\n  a = 1\n  return a", "def f():\n  a = 1\n  return b"),
    "a module's variable": ("a = 1", "b = 1"),
    "an attribute": ("def f(x):\n  x.a = 1", "def f(x):\n  x.b = 1"),
    "a keyword": ("def f(x):\n  a = 1\n  x(a=a)", "def f(x):\n  a = 1\n  x(b=a)"),
    "a class's variable": ("class C:\n  a = 1", "class C:\n  b = 1"),
    "in a class inside": (
        "def f():\n  a, b = 1, 2\n  class C: y = a\n  return C",
        "def f():\n  b, a = 1, 2\n  class C: y = a\n  return C",
    ),
    "that locals() returns": (
        "def f():\n  a = 1\n  return locals()",
        "def f():\n  b = 1\n  return locals()",
    ),
    "of the function outside": (
        "def f(x):\n  a = x\n  def g():\n    nonlocal a\n    a = 1\n  g()\n  return a",
        "def f(x):\n  a = x\n  def g():\n    a = 1\n  g()\n  return a",
    ),
    "what a comprehension runs over": (
        "def f(x):\n  a, b = x\n  return [a for a in a]",
        "def f(x):\n  a, b = x\n  return [a for a in b]",
    ),
    "what := names": (
        "def f(x):\n  b = 1\n  [(a := y) for y in x]\n  return b",
        "def f(x):\n  b = 1\n  [(b := y) for y in x]\n  return b",
    ),
    "what except names": (
        "def f(x):\n  b = 1\n  try: x()\n  except E as a: return a",
        "def f(x):\n  b = 1\n  try: x()\n  except E as a: return b",
    ),
    "what import names": (
        "def f():\n  a = 1\n  import b\n  return a",
        "def f():\n  a = 1\n  import b\n  return b",
    ),
    "what case names": (
        "def f(x):\n  b = 1\n  match x:\n    case [a]: return a",
        "def f(x):\n  b = 1\n  match x:\n    case [a]: return b",
    ),
    "a parameter inside": (
        "def f(x):\n  a = 1\n  return lambda b: a",
        "def f(x):\n  a = 1\n  return lambda a: a",
    ),
    "an empty text": ("f()", 'f("")'),
    "a constant": ("def f():\n  a = 1\n  return a", "def f():\n  a = 2\n  return a"),
}


def without_names(code):
    """Return what Python runs of compiled code: its bytes, constants and global names."""
    constants = [
        without_names(one) if isinstance(one, CodeType) else one for one in code.co_consts
    ]
    return code.co_code, constants, code.co_names


def compiled(source):
    return without_names(compile(source, "", "exec", optimize=2))


@pytest.mark.parametrize("case", SAME)
def test_names_of_local_variables_do_not_count(case):
    one, other = SAME[case]
    assert compiled(one) == compiled(other)
    assert depends.code_hash(one) == depends.code_hash(other)


@pytest.mark.parametrize("case", OTHER)
def test_all_other_names_count(case):
    one, other = OTHER[case]
    assert depends.code_hash(one) != depends.code_hash(other)
    compile(other, "", "exec")


# What else may name a variable; with a and b the other way round it names the other one.
NAMED_OTHERWISE = {
    "except": "  try: x()\n  except E as a: pass",
    "import": "  import a",
    "case": "  match x:\n    case [a]: pass",
    "def": "  def a(): pass",
    "global": "  global a",
    ":=": "  [(a := y) for y in x]",
}


@pytest.mark.parametrize("statement", NAMED_OTHERWISE)
def test_a_variable_that_a_statement_names_as_text_keeps_its_name(statement):
    inside = NAMED_OTHERWISE[statement]
    start = f"def f(x):\n{inside}\n" if statement == "global" else "def f(x):\n"
    end = "" if statement == "global" else f"{inside}\n"
    one = f"{start}  a, b = x\n{end}  return a"
    other = f"{start}  b, a = x\n{end}  return b"
    assert depends.code_hash(one) != depends.code_hash(other)


def test_a_parameter_inside_keeps_its_name():
    one = "def f(x):\n  a, b = x\n  return lambda a: a"
    other = "def f(x):\n  b, a = x\n  return lambda a: b"
    assert depends.code_hash(one) != depends.code_hash(other)


def test_docstrings_comments_and_layout_do_not_count():
    one = 'def f():\n  """F."""\n  return 1'
    other = "def f():\n    return 1  # one"
    assert depends.code_hash(one) == depends.code_hash(other)


# Every kind of expression and statement that the course uses, and some more.
ALL_KINDS = '''
"""A module."""
from __future__ import annotations
import a.b as c
from . import d
async def e(f, /, g: int = 1, *h, i=None, **j) -> str:
    """A function."""
    async with f as k, g: pass
    async for l in h:
        await l
    return f"{k!r:>{g}} {i=} and {j}" "more"
class K(list, metaclass=type):
    m: int = 0
    n: str
    @property
    def o(self):
        try:
            return self.m if self else -self[1:2, ...]
        except (KeyError, TypeError) as p:
            raise ValueError(b"q") from p
        else:
            assert not 1 < 2 <= 3, "r"
        finally:
            del self
def s(t):
    global u
    v = w = [x for x in t if x and (y := x)] + [*t]
    v += {**t, 1j: {2.5}}
    while v:
        v, *w = (z for z in v)
        if w: break
        else: continue
    match t:
        case {"a": 1, **rest} | [K(m=0), *_, None] as whole if whole: yield from rest
    return lambda *a, b=v: (yield)
'''


def test_the_hash_is_the_same_in_all_versions_of_python():
    """Records are made with one version, and compared in others."""
    made_with_3_11 = "4f08d7c4e451552cb01889b777dcbc38b620cca342112d7b089f020b4bac6598"
    assert depends.code_hash(ALL_KINDS) == made_with_3_11
