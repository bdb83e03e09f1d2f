"""What the scripts that draw have in common: rows of a CSV file, matplotlib for an SVG file that is the same for the same rows, and
refusals in one line (exit status 2). For the scripts beside it.
"""

import csv
import pathlib
import sys

NAME = pathlib.Path(sys.argv[0]).name
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "sluice", "font.size": 9, "axes.axisbelow": True, "axes.spines.top": False}


def refuse(text):
    print(f"{NAME}: {text}", file=sys.stderr)
    sys.exit(2)


def arguments():
    """The paths of the rows and of the picture."""
    if len(sys.argv) != 3 or not sys.argv[2].endswith(".svg"):
        refuse(f"usage: scripts/{NAME} FILE.csv OUT.svg")
    return sys.argv[1:]


def read(path):
    """(all rows, the names of their columns)"""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            return list(reader), set(reader.fieldnames or [])
    except OSError as error:
        refuse(f"{path}: {error.strerror}")
    except (UnicodeDecodeError, csv.Error):
        refuse(f"{path}: is no CSV file")


def read_rows(path, command, texts, numbers):
    """The rows that `command` writes, with these columns among theirs; those of `numbers` as such."""
    rows, columns = read(path)
    if not rows or not {*texts, *numbers} <= columns:
        refuse(f"{path}: has no rows of {command}")
    for index, row in enumerate(rows, start=1):
        try:
            row.update({column: float(row[column]) for column in numbers})
        except (TypeError, ValueError):
            refuse(f"{path}: row {index} is none of {command}: {row}")
    return rows


def subplots(*shape, style=None, **more):
    """pyplot.subplots(), in STYLE and what `style` has on top. What is refused before does not wait for matplotlib."""
    try:
        import matplotlib
    except ImportError:
        refuse("there is no matplotlib: 'scripts/setup plot' or 'apt-get install python3-matplotlib' installs it")
    matplotlib.use("svg")
    matplotlib.rcParams.update(STYLE | (style or {}))
    from matplotlib import pyplot  # after the choice of backend

    return pyplot.subplots(*shape, **more)


def save(figure, path):
    try:
        figure.savefig(path, metadata={"Date": None})
    except OSError as error:
        refuse(f"{path}: {error.strerror}")
