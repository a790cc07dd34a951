from menu import buttons


class Machine:
    """Keeps what was sold."""

    def __init__(self, fares):
        self.sold = []
        self._buttons = buttons(fares, lambda name, price: self.sold.append((name, price)))

    def press(self, number):
        """Whether there is such a button; if so, a ticket is sold."""
        action = self._buttons.get(number)
        if action is None:
            return False
        action()
        return True
