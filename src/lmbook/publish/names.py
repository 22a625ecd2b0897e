"""Which names code defines, and which it uses."""

import symtable


def defined_and_used(source: str) -> tuple[set[str], set[str]]:
    """Return the names that some code defines, and those that it uses.

    Parameters
    ----------
    source : str
        Python.

    Returns
    -------
    defined, used : set of str
        What is assigned or imported, or defined by ``def`` and ``class``, at the top level;
        and the global and built-in names that are used there or in functions, classes,
        lambdas and comprehensions.
    """
    top = symtable.symtable(source, "cell", "exec")
    own = top.get_symbols()
    defined = {name.get_name() for name in own if name.is_assigned() or name.is_imported()}
    used = {name.get_name() for name in own if name.is_referenced()}
    return defined, used | used_by_functions(source)


def used_by_functions(source: str) -> set[str]:
    """Return the names that functions, classes, lambdas and comprehensions use.

    These are the global and built-in ones. ``source`` : the Python code they stand in.
    """
    top = symtable.symtable(source, "cell", "exec")
    inner = list(top.get_children())
    for each in inner:
        inner += each.get_children()
    return {
        name.get_name() for each in inner for name in each.get_symbols() if name.is_global()
    }
