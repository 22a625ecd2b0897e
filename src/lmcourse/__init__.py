"""Helper package of the course *Inside Language Models*.

Each module is one subject: a mechanism taught by the chapter of the same name, or a
piece of plumbing (corpora, checkpoints, views, exercise checks).
"""

__version__ = "0.1.0"
