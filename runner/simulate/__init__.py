"""A training cluster on the user's desk: an independent reading of the wire, from the controller's side.

It imports nothing of `serve`: what it expects comes from the protocol, so that it really checks.
"""
