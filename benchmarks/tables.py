"""Tables, as text and for the documentation."""

from collections.abc import Iterable, Sequence


def print_row(*cells: str) -> None:
    """Print a row of a markdown table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a markdown table."""
    print(f"\n{title}\n")
    for cells in (header, ["---"] * len(header), *rows):
        print_row(*cells)


def csv_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of the documentation, as files in `docs/measured/` hold it."""
    quoted = (", ".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in (header, *rows))
    return "\n   ".join([".. csv-table::", ":header-rows: 1\n", *quoted]) + "\n"
