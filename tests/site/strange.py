"""Texts of ten kinds that a reader may paste, and how they are pasted."""

ONE_LINE = "so long as men can breathe " * 38_000  # about a megabyte
TEXTS = {
    "emoji": "🦋🙂 👩‍👩‍👧",
    "right to left": "שלום עולם",
    "one line of a megabyte": ONE_LINE,
    "Windows line ends": "one\r\ntwo",
    "a byte order mark": "\ufeffHope",
    "Latin-1 letters": "Über die Brücke",
    "empty": "",
    "one letter": "a",
    "Chinese": "床前明月光",
    "a zero byte": "Hope\0is",
}


def paste(area, text):
    """Put a text in the place of what stands in a box, as pasting does: it may be cut."""
    area.focus()
    area.select_text()
    keyboard = area.page.keyboard
    if text:
        keyboard.insert_text(text)
    else:
        keyboard.press("Delete")
