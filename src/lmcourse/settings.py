"""Configurations whose fields are checked when they are made, by pydantic.

A configuration is a dataclass under `settings`. What is wrong with it is said in
one line, a ValueError that names each field, what it may be, and what was given.
"""

from dataclasses import fields
from functools import wraps
from numbers import Integral
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

LARGEST = 10**8  # of a size: PyTorch counts with the product of two


def plain_number(value):
    """Return a NumPy number as one of Python, and any other ``value`` as it is."""
    return value.item() if isinstance(value, np.number) else value


WORDS = {  # pydantic's → ours
    "Input should be": "must be",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid tuple": "a list",
    "0.000000000001": "1e-12",
}

# A whole number is none with a point, and True is no number: `strict` sees to it.
Whole = Annotated[int, BeforeValidator(plain_number), Field(strict=True)]
Size = Annotated[Whole, Field(ge=1, le=LARGEST)]
Number = Annotated[
    float, BeforeValidator(plain_number), Field(strict=True, allow_inf_nan=False)
]
Switch = Annotated[bool, Field(strict=True)]
Rate = Annotated[Number, Field(ge=1e-12, le=1e30)]


def whole_number(value, name, least=1):
    """Return an argument of a function as an int, after a check.

    Parameters
    ----------
    value : object
        Whole numbers of NumPy are whole numbers, too; True is none.
    name : str
        Of the argument, for the error.
    least : int
        The smallest value that is allowed.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is no whole number from ``least`` on.
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, not {value!r}")
    return int(value)


def settings(cls, frozen=True):
    """Make a dataclass of a class, which checks its fields by their annotations.

    Parameters
    ----------
    cls : type
        Its annotations are those of this module or any that pydantic knows; a method
        ``__post_init__`` may raise ValueError if two fields do not fit each other.
    frozen : bool
        Whether its fields cannot be set afterwards, when nothing checks them.

    Returns
    -------
    type
        Its constructor raises ValueError if a field is unknown, missing or wrong.
    """
    checked = dataclass(cls, frozen=frozen, config=ConfigDict(extra="forbid"))
    make = checked.__init__

    @wraps(make)
    def make_or_explain(self, *values, **named_values):
        """Make the settings of ``values`` and ``named_values``, as the class itself does.

        If a value does not fit, a ValueError says which and why.
        """
        try:
            make(self, *values, **named_values)
        except ValidationError as error:
            raise ValueError(explain(error, checked)) from None

    checked.__init__ = make_or_explain
    return checked


def explain(error, cls):
    """Say in one line what pydantic found wrong.

    Parameters
    ----------
    error : pydantic.ValidationError
    cls : type
        The configuration.

    Returns
    -------
    str
        For each wrong field its name, what it should be, and what was given, with "; "
        between: "layers must be a whole number, not 'two'".
    """
    sentences = []
    name = cls.__name__
    for each in error.errors():
        first, *rest = each["loc"] or ("",)
        if isinstance(first, int) and first < len(fields(cls)):  # given by its position
            first = fields(cls)[first].name
        path = ".".join(map(str, (first, *rest)))
        kind = each["type"]
        given = each.get("input")
        if kind == "value_error":  # of a __post_init__, in words of its own
            sentences.append(str(each["ctx"]["error"]))
        elif kind in ("unexpected_keyword_argument", "unexpected_positional_argument"):
            sentences.append(f"{name} has no field {path!r}")
        elif kind == "missing" or kind.startswith("missing_"):
            sentences.append(f"{name} needs a value for {path!r}")
        elif kind.startswith("multiple_argument"):
            sentences.append(f"{name} was given two values for {path!r}")
        else:
            should = each["msg"]
            for theirs, ours in WORDS.items():
                should = should.replace(theirs, ours)
            sentences.append(f"{path} {should}, not {repr(given)[:60]}")
    return "; ".join(sentences)
