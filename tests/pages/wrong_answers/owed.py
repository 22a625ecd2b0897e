"""What the tables of tasks still owe, "chapter.task" → rows; the list only shrinks."""

OWED: dict[str, str] = {}
MOST_OWED = 0
