class Circle(ValueError):
    """Tasks that wait for each other; `tasks` are their names."""

    def __init__(self, tasks):
        super().__init__(f"they wait for each other: {', '.join(tasks)}")
        self.tasks = tasks


def order(needs):
    """Task names in an order in which each comes after what it needs. `needs` is by name the names it needs."""
    left = {name: set(names) for name, names in needs.items()}
    for names in list(left.values()):
        for name in names:
            left.setdefault(name, set())
    done = []
    while left:
        ready = sorted(name for name, names in left.items() if names <= set(done))
        if not ready:
            break
        done += ready
        for name in ready:
            del left[name]
    return done
