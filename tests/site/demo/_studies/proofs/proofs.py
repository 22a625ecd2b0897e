"""The proofs of the demonstration's page *proofs*."""

from studies.findings import finding, proof


@proof("One and one are two, as `sum_of_two` says, and <b>nothing</b> else")
def one_and_one_are_two(page):
    """By adding."""
    assert page.sum_of_two == 2
    return {"sum": page.sum_of_two}


def no_one_counts(page):
    """Nobody counts."""
    return page.replaced(sum_of_two=3)


@finding(
    "In a fold there is proof, too",
    rival="counting on <b>fingers</b>, with `len`",
    null=no_one_counts,
    n="{hands:.1f} hands",
)
def in_a_fold_too(page):
    """Fewer than three."""
    assert page.sum_of_two < 3
    return {"hands": page.sum_of_two}


@finding(
    "No other model was chosen",
    rival="a name that nobody would choose",
    n="one name",
    no_null="a name is there or is not",
)
def no_other_model(page):
    """The tests build this page with another model."""
    assert not page.name, "a model was chosen"
    return {"chosen": len(page.name) > 0}


def no_name(page):
    """Nobody has a name."""
    return page.replaced(name=None)


@finding("The name of a model is a string", rival="a number", null=no_name, n="one name")
def the_name_is_a_string(page):
    """By its type."""
    assert isinstance(page.name, str)


@finding(
    "No letter is in the name of another model",
    rival="a name of the letter a alone",
    n="one name",
    no_null="a letter is there or is not",
)
def no_letter_is_in_the_name(page):
    """But for the letter a."""
    for letter in page.name:
        assert letter == "a", f"there is {letter!r} in the name"
