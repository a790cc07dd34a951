"""A config becomes a plan: everything imported, compiled and checked, nothing running.

The only floor that knows both config and parts.
"""
