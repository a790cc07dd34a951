"""A module that imports a package nobody has."""

from __future__ import annotations

import elasticsearch_nowhere.client

CLIENT = elasticsearch_nowhere.client.Client()


def search(query: str) -> str:
    return query
