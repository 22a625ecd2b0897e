"""Checks for the exercises of the chapter *backpropagation*, in the page's order."""

from lmcourse.exercises.backpropagation import algebra, attention, use

__all__ = ["algebra", "attention", "use"]
