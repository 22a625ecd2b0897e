"""Settings as they may be mistyped: checks for the fields of a configuration."""

import sys
from dataclasses import fields
from typing import get_origin

__all__ = ["check_least", "check_positive", "check_types"]

KINDS = {int: "a whole number", float: "a finite number", tuple: "a list of whole numbers"}


def _is(value, kind):
    """Say whether a value is of a kind; True and False are no numbers."""
    if kind is tuple:
        return isinstance(value, tuple) and all(_is(entry, int) for entry in value)
    if isinstance(value, bool):
        return False
    if kind is int:
        return isinstance(value, int)
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def check_types(config):
    """Raise ValueError unless each number of a dataclass is what its annotation says.

    Where a float is wanted an int will do; neither nan nor infinity will. A tuple is one
    of ints. Words are left to who knows which there are.
    """
    for field in fields(config):
        kind, value = get_origin(field.type) or field.type, getattr(config, field.name)
        if kind in KINDS and not _is(value, kind):
            raise ValueError(f"{field.name} must be {KINDS[kind]}, not {value!r}")


def check_least(config, least, *names):
    """Raise ValueError if a named field is below the least."""
    for name in names:
        if getattr(config, name) < least:
            raise ValueError(
                f"{name} must be at least {least}, not {getattr(config, name)}"
            )


def check_positive(config, *names):
    """Raise ValueError if a named field is zero or below."""
    for name in names:
        if getattr(config, name) <= 0:
            raise ValueError(f"{name} must be above 0, not {getattr(config, name)}")
