def search(query: str) -> str
    return query
