"""The columns of a CSV or Parquet file, in chunks of rows, or all at once: the one reader of all commands.

How a cell is read follows from the role of its column and from public options, never from other cells: a
column whose type is guessed from what it holds would let one record change how all others are read. Text is
read alike in every kind of file. Messages name columns, which are public, but no cell and no row. No row is
dropped: a blank line is a missing value.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import textwrap
import zlib
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.cli import CommandError, Parser, Refusal
from dp_metrics.cli.words import BOOLEANS, COLUMNS, MISSING, add_option, label_reader
from dp_metrics.inputs.arrays import ArgumentShape, Shape
from dp_metrics.inputs.models import NamedColumns
from dp_metrics.inputs.options import Array, ByName, did_you_mean

_LARGEST_WHOLE = 2**53

Chunk: TypeAlias = dict[str, NamedColumns]

_LONGEST_ROW = 1 << 20  # bytes
_CSV_BLOCK = 2 * _LONGEST_ROW  # bytes; the reader takes no row that is longer, and looks a few blocks ahead
_DELIMITERS = {",": ",", ";": ";", "|": "|", "tab": "\t", "\t": "\t", "\\t": "\t"}
_BOM = b"\xef\xbb\xbf"
_ENDS_OF_LINES = np.frombuffer(b"\r\n", dtype=np.uint8)
_BOMS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_MOST_SHOWN = 500  # characters of the names of columns
_PARQUET_ROWS = 1 << 16
_PARQUET_BUFFER = 1 << 20  # bytes
_LIKE_A_NUMBER = re.compile(r"[-+.,\s0-9]*[0-9][.,\s0-9]*([eE][+-]?[0-9]+)?\s*")  # with any decimal mark


@dataclass(frozen=True)
class Column:
    """A column of a file.

    Parameters
    ----------
    name : str
        Its name.
    labels : sequence or None, default=None
        The public labels that cells are; empty: any label or id. None: they are numbers.
    is_id : bool, default=False
        Whether they are ids, which stay text where they look like fractions.
    """

    name: str
    labels: Sequence[Any] | None = None
    is_id: bool = False

    @property
    def is_label(self) -> bool:
        """Whether cells are read as labels or ids: not where all labels are numbers that floats hold."""
        if not self.labels:
            return self.labels is not None
        return not all(isinstance(one, int | float) and abs(one) < _LARGEST_WHOLE for one in self.labels)

    @property
    def missing(self) -> Refusal:
        """What is raised for a cell that is missing."""
        return Refusal(f"column {self.name!r}: a value is missing; nothing was spent")


Columns: TypeAlias = Mapping[str, Sequence[Column]]
"""The columns of each argument: an array with one dimension if there is one column."""


def columns_of(
    named: Mapping[str, Sequence[str]], labelled: Collection[str] = (), labels: Any = ()
) -> dict[str, list[Column]]:
    """Return how columns are read, which follows from public things only.

    Parameters
    ----------
    named : mapping of str to sequence of str
        The names of the columns of each argument.
    labelled : collection of str, default=()
        The arguments that hold labels.
    labels : sequence or None, default=()
        The public labels. None: whole numbers from 0. Empty: any, which nobody can list.
    """
    known = tuple(labels) if isinstance(labels, list | tuple) else (0,)
    held = {**dict.fromkeys(labelled, known), "groups": ()}
    return {
        argument: [Column(name, held.get(argument), argument == "groups") for name in names]
        for argument, names in named.items()
    }


def columns_typed(typed: Namespace) -> dict[str, list[str]]:
    """Return the names of columns that were typed for each argument, but for features: those have labels."""
    return {name: vars(typed)[name] for name in vars(typed) if name in COLUMNS - {"sensitive_features"}}


class Predictions:
    """A file of records, read in chunks: dicts of arrays.

    Parameters
    ----------
    path : Path
        The file.
    arguments : mapping of str to sequence of Column
        The columns of each argument.
    delimiter : {",", ";", "|", "tab"}, default=","
        What stands between the cells of a CSV file.
    decimal : {".", ","}, default="."
        The decimal mark of its numbers. A point in a number with decimal commas is an error: many write
        thousands so.

    Attributes
    ----------
    there : list of str
        The names of all columns of the file.
    """

    there: Sequence[str]

    def __init__(
        self, path: Path, arguments: Columns, delimiter: str | None = None, decimal: str | None = None
    ) -> None:
        name = path.name.lower().removesuffix(".gz")
        is_csv = name.endswith((".csv", ".tsv"))
        if not (is_csv or path.suffix.lower() in (".parquet", ".pq")):
            raise CommandError(
                f"{path} is no file of a known kind: save it as one that ends in .csv, .tsv, .csv.gz, "
                ".tsv.gz, .parquet or .pq"
            )
        if (delimiter or decimal) and not is_csv:
            raise CommandError(f"{path} is no CSV file: it takes no --delimiter and no --decimal")
        if not path.is_file():
            raise CommandError(f"there is no file {path}")
        self._path, self._arguments = path, arguments
        usual = "tab" if name.endswith(".tsv") else ","
        self._delimiter, self._decimal = delimiter or usual, decimal or ("." if is_csv else None)
        self._pa = import_extra("pyarrow", "cli")
        self._columns = dict.fromkeys(one.name for one in chain(*arguments.values()))
        self._batches = self._csv_batches if is_csv else self._parquet_batches
        with self._reading():
            self._types = self._csv_types() if is_csv else self._parquet_types()

    def chunks(self, only: Set[str] | None = None) -> Iterator[Chunk]:
        """Yield the records in chunks; the last one has come only if the whole file could be read.

        The cells of arguments that are not among those named by `only` are not looked at: in their place are
        numbers of which nothing can be released.
        """
        # the bar shows which part of the file has been read, not of rows: their number may be private
        form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        settings = {"total": 1.0, "desc": self._path.name, "bar_format": form, "leave": False}
        # None shows it on a terminal only; there may be no standard error
        settings |= {"file": sys.stderr, "disable": True if sys.stderr is None else None}
        with self._reading(), import_extra("tqdm", "cli").tqdm(**settings) as bar:
            for batch, part in self._batches():
                bar.update(part)
                if batch is not None:
                    yield self._arrays(batch, only)

    def whole(self, only: Set[str] | None = None) -> Chunk:
        """Return all records."""
        chunks = [*self.chunks(only)] or [self.no_records()]
        return {
            name: replace(first, data=np.concatenate([chunk[name].data for chunk in chunks]))
            for name, first in chunks[0].items()
        }

    def no_records(self) -> Chunk:
        """Return a chunk without records."""
        empty = {name: self._pa.array([], kind) for name, kind in self._types.items()}
        return self._arrays(self._pa.RecordBatch.from_pydict(empty))

    def shape(self, names: Sequence[str], n: int | None = None) -> Shape:
        """Return the public form of these arguments, before any record is read."""
        empty = self.no_records()
        return Shape(tuple(ArgumentShape.of(empty[name], np.asarray(empty[name])) for name in names), n)

    def _csv_types(self) -> ByName:
        """Return that all columns hold text, once they are found; the file is UTF-8, with a line of names."""
        with self._path.open("rb") as raw, _unpacked(self._path, raw) as file:
            first = file.read(2)
            if first in _BOMS_OF_UTF_16 or b"\0" in first:
                raise Refusal(
                    f"{self._path} is UTF-16, and not UTF-8: save it as 'CSV UTF-8', or convert it with "
                    "iconv -f UTF-16 -t UTF-8; nothing was spent"
                )
            file.seek(0)
            lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            self.there = next(csv.reader(lines, delimiter=_DELIMITERS[self._delimiter]), [])
        # without a line of names the first one is a record, which holds a number or no name that was typed
        are_names = any(name in self.there for name in self._columns)
        are_names = are_names and not any(map(_LIKE_A_NUMBER.fullmatch, self.there))
        marks = f"with {self._delimiter!r} between them (or pass --delimiter)"
        self._find("" if are_names else f": its first line must hold the names, {marks}")
        return dict.fromkeys(self._columns, self._pa.string())

    def _csv_batches(self) -> Iterator[tuple[Any, float]]:
        reader = import_extra("pyarrow.csv", "cli")
        mark = _DELIMITERS[self._delimiter]
        blocks = _checked_blocks(self._path, mark)
        # no file of Python: the threads of the reader need none, and Python may end before they do
        batches = reader.open_csv(
            self._pa.input_stream(str(self._path), compression="gzip" if _is_packed(self._path) else None),
            read_options=reader.ReadOptions(block_size=_CSV_BLOCK),
            # a blank line is a record that is missing: to ignore it would change their number
            parse_options=reader.ParseOptions(
                delimiter=mark, newlines_in_values=True, ignore_empty_lines=False
            ),
            convert_options=reader.ConvertOptions(
                include_columns=[*self._columns],
                column_types=self._types,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        # all blocks are checked before the last batch is done
        for batch, part in zip_longest(batches, blocks):
            yield batch, part or 0.0

    def _parquet_types(self) -> ByName:
        """Return the type of each column that was asked for, once they are found."""
        schema = import_extra("pyarrow.parquet", "cli").read_schema(self._path)
        self.there = schema.names
        self._find()
        of = self._pa.types
        for column in chain(*self._arguments.values()):
            found = schema.field(column.name).type
            there = found.value_type if of.is_dictionary(found) else found
            are_numbers = of.is_primitive(there) and not of.is_temporal(there)
            if not (self._is_text(there) or are_numbers or of.is_decimal(there)):
                raise CommandError(f"column {column.name!r} holds {there}: numbers or text are needed")
        return {name: schema.field(name).type for name in self._columns}

    def _parquet_batches(self) -> Iterator[tuple[Any, float]]:
        reader = import_extra("pyarrow.parquet", "cli")
        with reader.ParquetFile(self._path, buffer_size=_PARQUET_BUFFER, pre_buffer=False) as file:
            rows = max(file.metadata.num_rows, 1)
            for group in range(file.num_row_groups):  # several at once would be held in memory together
                for batch in file.iter_batches(_PARQUET_ROWS, row_groups=[group], columns=[*self._columns]):
                    yield batch, batch.num_rows / rows

    def _find(self, instead: str = "") -> None:
        """Raise unless each column is there once; say which there are, or something instead."""
        for name in self._columns:
            if self.there.count(name) != 1:
                names = textwrap.shorten(", ".join(map(repr, self.there)), _MOST_SHOWN, placeholder=" ...")
                there = instead or f"; it has {names}"
                if name in self.there:
                    raise CommandError(f"{self._path} has more than one column {name!r}{there}")
                hint = "" if instead else f".{did_you_mean(name, self.there)}"
                raise CommandError(f"{self._path} has no column {name!r}{there}{hint}")

    def _is_text(self, kind: Any) -> bool:
        of = self._pa.types
        return bool(of.is_string(kind) or of.is_large_string(kind))

    def _arrays(self, batch: Any, only: Set[str] | None = None) -> Chunk:
        chunk, n = {}, batch.num_rows
        for argument, columns in self._arguments.items():
            if only is None or argument in only:
                arrays = [self._array(batch.column(one.name), one) for one in columns]
            else:
                arrays = [np.full(n, np.nan)] * len(columns)
            array = arrays[0] if len(arrays) == 1 else np.column_stack(arrays)
            chunk[argument] = NamedColumns(array, tuple(one.name for one in columns))
        return chunk

    def _array(self, cells: Any, column: Column) -> Array:
        if cells.null_count:
            raise column.missing
        of = self._pa.types
        if of.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if column.is_label and self._is_text(cells.type):
            return self._labels(cells, column)
        if not column.is_label and (self._is_text(cells.type) or of.is_decimal(cells.type)):
            return self._numbers(cells, column)
        return np.asarray(cells.to_numpy(zero_copy_only=False))

    def _labels(self, cells: Any, column: Column) -> Array:
        """Return the label or id in each cell of text."""
        coded = cells.dictionary_encode()
        read = label_reader(column.labels or (), self._decimal)
        known = np.array([read(text) for text in coded.dictionary.to_pylist()], dtype=object)
        if any(one is None for one in known):
            raise column.missing
        if column.is_id:
            known = np.array([*map(str, known)], dtype=object)
        return np.asarray(known[coded.indices.to_numpy(zero_copy_only=False)])

    def _numbers(self, cells: Any, column: Column) -> Array:
        """Return the number in each cell of text, or of decimals, which as text become the nearest floats."""
        compute, pa = import_extra("pyarrow.compute", "cli"), self._pa
        text = compute.utf8_trim_whitespace(compute.cast(cells, pa.string()))
        if self._decimal == ",":
            # a point becomes what no number holds
            text = compute.replace_substring(compute.replace_substring(text, ".", "?"), ",", ".")
        truths = pa.array([str(int(truth)) for truth in BOOLEANS.values()])
        text = compute.coalesce(truths.take(compute.index_in(text, value_set=pa.array([*BOOLEANS]))), text)
        try:
            numbers = compute.cast(text, pa.float64())
        except pa.ArrowInvalid:
            if compute.any(compute.is_in(text, value_set=pa.array(sorted(MISSING)))).as_py():
                raise column.missing from None
            if_text = ""
            if column.labels is not None:
                if_text = " (for labels that are text, pass --labels; for groups, --group-labels of text)"
            if_commas = " (for decimal commas, pass --decimal ,)" if self._decimal == "." else ""
            raise Refusal(
                f"column {column.name!r} holds something that is no number{if_text}{if_commas}; "
                "nothing was spent"
            ) from None
        if compute.any(compute.is_nan(numbers)).as_py():  # spelled in another way, such as -nan
            raise column.missing
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (self._pa.ArrowException, UnicodeError, csv.Error, EOFError, OSError, zlib.error) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            # the message of the reader quotes the row
            raise Refusal(
                f"{self._path} can't be read: it is damaged or cut off, or not UTF-8, or a row does not have "
                f"as many cells as the header, or has more than {_LONGEST_ROW:,} bytes; nothing was spent"
            ) from None


MEDS = {
    "y_true": "boolean_value",
    "y_score": "predicted_boolean_probability",
    "y_pred": "predicted_boolean_value",
    "groups": "subject_id",
}
"""The columns of predictions in the format of MEDS, by argument; a file may lack one of the predictions."""


def add_file(parser: Parser, nargs: str | None = None) -> None:
    """Add the options that say which file there is, and how it is written.

    Options
    -------
    predictions
        file: .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .pq
    delimiter
        what stands between the cells of a CSV file: ',' (default), ';', '|' or tab (default of .tsv)
    decimal
        decimal mark of the numbers of a CSV file: '.' (default) or ','
    """
    own = partial(add_option, parser, add_file)
    own("predictions", "predictions", type=Path, nargs=nargs, metavar="PREDICTIONS")
    own("delimiter", "--delimiter", "--sep", choices=_DELIMITERS, metavar="MARK")
    own("decimal", choices=[".", ","], metavar="MARK")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _unpacked(path: Path, raw: BinaryIO) -> Any:
    """Return what a file of text holds, packed or not, as its name says."""
    return gzip.GzipFile(fileobj=raw) if _is_packed(path) else raw


def _checked_blocks(path: Path, delimiter: str) -> Iterator[float]:
    """Read a CSV file beside its reader, a block at a time, and yield which part of the file each is.

    It raises at the end if quotation marks hide rows, or if a row is longer than all readers take.

    A reader takes a quotation mark within a cell as it stands, unless the cell begins with one: then one
    record's mark would swallow the rows up to another's. So each must be at an end of its cell, or doubled.
    And whether it takes a row that is longer than a block depends on how long the rows before are.
    """
    size, told = max(path.stat().st_size, 1), 0
    last, has_stray, longest, row = b"\n", False, 0, 0
    # a quotation mark opens a cell after these, and closes one before them
    beside = np.frombuffer(f'{delimiter}\r\n"'.encode(), dtype=np.uint8)
    with path.open("rb") as raw, _unpacked(path, raw) as file:
        file.seek(len(_BOM) if file.read(len(_BOM)) == _BOM else 0)
        while block := file.read(_CSV_BLOCK):
            # an end of a line stands behind the block, and so (at -1) before what comes first
            there = np.frombuffer(b"%b%b\n" % (last, block), dtype=np.uint8)
            marks = np.flatnonzero(there == ord('"'))  # the first, third and so on open a cell
            neighbours = there[np.concatenate([marks[::2] - 1, marks[1::2] + 1])]
            has_stray |= not np.isin(neighbours, beside).all()
            # a row goes on from block to block, and within cells: `row` is how much of it there was before
            ends = np.flatnonzero(np.isin(there[len(last) : -1], _ENDS_OF_LINES))
            ends = ends[np.searchsorted(marks, ends + len(last)) % 2 == 0]
            rows = np.diff(np.concatenate([[-row - 1], ends, [len(block)]])) - 1
            longest, row = max(longest, int(rows.max())), int(rows[-1])
            # before the next block comes the mark of an open cell, or the last byte, or both marks of a cell
            last = b'"' if marks.size % 2 else block[-1:].replace(b'"', b'""')
            yield (raw.tell() - told) / size
            told = raw.tell()
    if last == b'"':
        raise Refusal(f"{path} has an odd number of quotation marks: it may be cut off; nothing was spent")
    if has_stray:
        raise Refusal(
            f"{path} has quotation marks within a cell that are not doubled, so that nobody can tell where "
            "rows end; nothing was spent"
        )
    if longest > _LONGEST_ROW:
        raise csv.Error  # the reader may have refused such a row before: both say the same
