SIGNS = {"<": "&lt;", ">": "&gt;", '"': "&quot;", "&": "&amp;"}


def escaped(text):
    """`text` as it is written in a page."""
    for sign, written in SIGNS.items():
        text = text.replace(sign, written)
    return text
