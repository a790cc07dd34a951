class Bus:
    """`listeners` are functions by the name of what they want to hear of."""

    def __init__(self, name, listeners={}):
        self.name = name
        self.listeners = listeners

    def on(self, event, listener):
        self.listeners.setdefault(event, []).append(listener)

    def emit(self, event, *values):
        """Tell everybody. Returns how many those were."""
        told = self.listeners.get(event, [])
        for listener in told:
            listener(*values)
        return len(told)
