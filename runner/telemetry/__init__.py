"""Listeners: who hears what happens inside rollouts, and writes it down."""
