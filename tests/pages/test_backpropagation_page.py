"""*Backpropagation* trains what its reader wrote, and says so where it does not."""

from chapters import definitions, page_cells
from lmbook.publish.names import defined_and_used
from lmcourse.numpy_nn import attention
from lmcourse.numpy_nn.decoder import train_decoder

CLASSES = ["ScaledDotProductAttention", "ProjectedAttention", "MultiHeadAttention"]
CELLS = page_cells("backpropagation")


def run(answered):
    """Execute the page up to its decoder, proofs and figures apart.

    Where a task is answered, its solution stands under the reader's own name.
    """
    space = {"__name__": "the_readers_page"}
    for cell in CELLS:
        defined, used = defined_and_used(cell.source)
        draws = "figures" in used - defined
        if draws or cell.part == "solution":
            continue
        exec(cell.source, space)
        solved = [c for c in CELLS if c.part == "solution" and c.exercise == cell.exercise]
        if cell.exercise and cell.exercise.split("-")[-1] in answered:
            for solution in solved:
                exec(solution.source.replace("Solution", ""), space)
        if "model" in defined:
            return space
    raise AssertionError("no cell makes a model")


def parts(space):
    several = space["model"].blocks.modules[1].attention
    head = several.heads.branches[2]
    return [head.attention, head, several]


def test_a_readers_own_classes_are_trained(capsys):
    space = run(["attention", "heads"])
    assert [type(part) for part in parts(space)] == [space[name] for name in CLASSES]
    assert {type(part).__module__ for part in parts(space)} == {"the_readers_page"}
    output = capsys.readouterr().out
    assert output.count("goes on with your") == 2
    assert "the package's" not in output
    numbers = space["text"][:8]
    losses = train_decoder(space["model"], numbers, 30, batch=2)
    assert losses[-1] < losses[0] - 0.5


def test_what_is_not_written_yet_is_the_packages_and_the_page_says_so(capsys):
    space = run(["attention"])
    assert type(space["model"].blocks.modules[0].attention) is attention.MultiHeadAttention
    output = capsys.readouterr().out
    assert output.count("goes on with your") == output.count("does not pass its check") == 1


def test_no_solution_takes_a_readers_name():
    readers = {*CLASSES, "NormedSum", "learn"}
    for cell in CELLS:
        if cell.part == "solution":
            assert not definitions(cell.source).keys() & readers
