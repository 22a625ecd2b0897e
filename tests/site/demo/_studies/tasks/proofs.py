"""What the demonstration's page *tasks* takes for right."""

from studies.findings import proof


@proof("The mean of the rows has the size of a row")
def the_mean_has_the_size_of_a_row(page):
    """And not the number of rows, nor one."""
    size = len(page.middle)
    answers = {"a": len(page.X), "b": len(page.X[0]), "c": 1}
    (answer,) = [letter for letter, number in answers.items() if number == size]
    return {"answer": answer, "size": size}


@proof("The second line does not take the mean of the rows")
def the_second_line_is_wrong(page):
    """It has one number for each row; the mean of the rows has one for each column."""
    assert len(page.rows) == 2
    assert page.mean != [sum(column) / 2 for column in zip(*page.rows, strict=True)]
    return {"answer": "b"}
