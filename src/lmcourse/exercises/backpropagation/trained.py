"""The tasks about the trained decoder."""

from lmcourse.exercises import judge, predict

# Which layer turns first when the lengths of what attention is given are swapped.
predict(
    "backpropagation.turns_first",
    a="being close to the loss does not help a layer whose vectors are short.",
    b="the two get different lengths; look at step 8 of the drawing: what is the gradient "
    "of a query made of?",
    c=None,
    d="attention learns without a norm, if what it is given is long enough.",
)

# Which of two lists of neighbours comes from the trained table.
judge(
    "backpropagation.neighbours",
    a="look again at what the words have in common: do they stand near each other "
    "in a line, or can one stand where the other stands?",
    b=None,
    c="they are of different kinds. Put a neighbour in the word's place: in "
    "which column does a line still stand?",
)
