"""A tool for parts of workflows."""


def calculator(expression: str) -> str:
    """Work out an arithmetic expression."""
    return expression
