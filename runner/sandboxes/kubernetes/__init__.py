"""Sandboxes that are pods of a Kubernetes cluster: `maker` makes them, only `connection` knows HTTP."""
