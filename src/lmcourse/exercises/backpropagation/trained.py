"""The task about the trained word vectors."""

from lmcourse.exercises import judge

# Which of two lists of neighbours comes from the trained table.
judge(
    "backpropagation.neighbours",
    a="look again at what the words have in common: do they stand near each other "
    "in a line, or can one stand where the other stands?",
    b=None,
    c="they are of different kinds. Put a neighbour in the word's place: in "
    "which column does a line still stand?",
)
