from ini import parse


def jobs(text):
    """Each section that has a command, with its command line."""
    return {name: table["command"] for name, table in parse(text).items() if "command" in table}
