import argparse
import sys

from wordcount.counting import count


def main(argv=None):
    parser = argparse.ArgumentParser(prog="wordcount", description="Count the words of files.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--least", default=1, metavar="LENGTH", help="only words of so many letters")
    parser.add_argument("--top", type=int, default=10, metavar="COUNT")
    options = parser.parse_args(argv)
    failed = False
    texts = []
    for name in options.files:
        try:
            with open(name, encoding="utf-8") as file:
                texts.append(file.read())
        except OSError as error:
            print(f"wordcount: {name}: {error.strerror}", file=sys.stderr)
            failed = True
    for word, times in count(" ".join(texts), options.least).most_common(options.top):
        print(f"{times:6} {word}")
    return 2 if failed else 0
