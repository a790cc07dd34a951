from functools import wraps

from lru import Cache


def memo(size):
    """Remember the last `size` results of a function of one argument."""

    def wrap(function):
        cache = Cache(size)

        @wraps(function)
        def call(argument):
            found = cache.get(argument)
            if found is None:
                found = function(argument)
                cache.put(argument, found)
            return found

        call.cache = cache
        return call

    return wrap
