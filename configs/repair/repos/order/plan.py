from order import order


def plan(text):
    """The order of tasks from lines such as `bake: mix, heat`."""
    needs = {}
    for line in text.splitlines():
        name, _, names = line.partition(":")
        needs[name.strip()] = [each.strip() for each in names.split(",") if each.strip()]
    return order(needs)
