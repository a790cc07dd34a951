import re
from collections import Counter


def count(text, least=1):
    """How often each word of `least` letters or more is there, whatever its case."""
    return Counter(word for word in re.findall(r"[^\W\d_]+", text.lower()) if len(word) >= least)
