from events.bus import Bus

__all__ = ["Bus"]
