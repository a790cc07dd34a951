def wrap(text, width=32):
    """Lines of at most `width` signs, broken between words; a longer word has a line of its own."""
    lines = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}"
    return lines
