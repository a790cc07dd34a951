from page.escaping import escaped


def element(tag, *content, **attributes):
    """`content` are texts, or elements as a list with one text that is written as it is."""
    opened = "".join(f' {name.rstrip("_")}="{escaped(str(value))}"' for name, value in attributes.items())
    inner = "".join(each[0] if isinstance(each, list) else escaped(each) for each in content)
    return [f"<{tag}{opened}>{inner}</{tag}>"]
