def buttons(fares, sell):
    """By number, from 1, what pressing it does: it sells the ticket of that fare."""
    actions = {}
    for number, (name, price) in enumerate(fares, 1):
        actions[number] = lambda: sell(name, price)
    return actions


def shown(fares):
    """The lines on the screen."""
    return [f"{number}  {name:<12}{price / 100:6.2f}" for number, (name, price) in enumerate(fares, 1)]
