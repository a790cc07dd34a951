"""A script that was never meant to be imported."""

from __future__ import annotations

import sys

if len(sys.argv) != 99:
    sys.exit("usage: exits.py NAME")
