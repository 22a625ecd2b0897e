"""Checks for the exercises of the chapter *backpropagation*, in the page's order."""

from lmcourse.exercises.backpropagation import algebra, attention, norm, use

__all__ = ["algebra", "attention", "norm", "use"]
