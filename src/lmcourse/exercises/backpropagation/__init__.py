"""Checks for the exercises of the chapter *backpropagation*, in the page's order."""

from lmcourse.exercises.backpropagation import gradients, trained

__all__ = ["gradients", "trained"]
