def counter(bus, event):
    """Counts an event of a bus from now on: a list of one number."""
    count = [0]

    def heard(*values):
        count[0] += 1

    bus.on(event, heard)
    return count
