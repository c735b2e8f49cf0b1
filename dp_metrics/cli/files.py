"""The columns of a CSV or Parquet file, in chunks of rows, or all at once: the one reader of all commands.

How a cell is read follows from the role of its column and from public options, never from other cells: a
column whose type is guessed from what it holds would let one record change how all others are read. Text is
read alike in every kind of file. Messages name columns, which are public, but no cell and no row. No row is
dropped: a blank line is a missing value.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics._packages import import_extra
from dp_metrics.cli.words import BOOLEANS, MISSING, CommandError, Refusal, label_reader
from dp_metrics.inputs.arrays import ArgumentShape
from dp_metrics.inputs.models import NamedColumns
from dp_metrics.inputs.options import did_you_mean
from dp_metrics.metrics import Metric
from dp_metrics.release.stored_questions import PER_RECORD

_LARGEST_WHOLE = 2**53
_IF_LABELS_ARE_TEXT = " (for labels that are text, pass --labels)"


def column_of(row: Metric, argument: str, columns: Sequence[str], options: Mapping[str, Any]) -> ColumnSpec:
    """Return how the columns of an argument are read, which follows from the metric and from public labels.

    Parameters
    ----------
    row : Metric
        The metric.
    argument : str
        Which argument of it.
    columns : sequence of str
        Names of the columns.
    options : mapping
        Public options, of which `labels` tells whether labels are text.
    """
    if not (row.predicts_labels or ("labels" in row.options and argument == row.data[0])):
        return ColumnSpec(columns, Kind.NUMBER, is_named="labels" in row.options)
    if "labels" not in row.options:
        return ColumnSpec(columns, Kind.LABEL)
    return column_of_labels(columns, options.get("labels"), _IF_LABELS_ARE_TEXT)


def column_of_labels(columns: Sequence[str], labels: Any, if_text: str = "") -> ColumnSpec:
    """Return how columns of these public labels are read; None stands for whole numbers from 0."""
    known = labels if isinstance(labels, list | tuple) else ()
    if all(isinstance(label, int | float) and abs(label) < _LARGEST_WHOLE for label in known):
        return ColumnSpec(columns, Kind.NUMBER, if_text)
    return ColumnSpec(columns, Kind.LABEL, if_text, known)


Chunk: TypeAlias = dict[str, Any]
Progress: TypeAlias = Callable[[float], object]
"""Is told which part of the file, from 0 to 1, has been read since it was told last."""

_CSV_BLOCK = 1 << 20  # bytes, and the longest row; the reader looks a few blocks ahead
_QUOTE = ord('"')
_DELIMITERS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
_BOM = b"\xef\xbb\xbf"
_BOMS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_MOST_SHOWN = 500  # characters of the names of columns
_PARQUET_ROWS = 1 << 16
_PARQUET_BUFFER = 1 << 20  # bytes
_LIKE_A_NUMBER = re.compile(r"[-+.,\s0-9]*[0-9][.,\s0-9]*([eE][+-]?[0-9]+)?\s*")  # with any decimal mark


class Kind(Enum):
    """How the cells of a column are read."""

    NUMBER = auto()
    LABEL = auto()  # a label or an id


@dataclass(frozen=True)
class ColumnSpec:
    """Columns that make one argument of a metric: an array with one dimension if there is one column.

    Parameters
    ----------
    columns : sequence of str
        Their names.
    kind : Kind
        How their cells are read.
    if_text : str, default=""
        For messages: what to do about text where numbers are needed.
    labels : sequence, default=()
        The labels that were given; none: any.
    is_named : bool, default=False
        Whether the names of columns may be those of labels, and then say which column is which.
    """

    columns: Sequence[str]
    kind: Kind
    if_text: str = ""
    labels: Sequence[Any] = ()
    is_named: bool = False

    def named(self, array: NDArray[Any]) -> Any:
        """Return what is read of the columns, with their names where these may tell something."""
        return NamedColumns(array, tuple(self.columns)) if self.is_named else array


class Predictions:
    """A file of records, read in chunks: dicts of arrays.

    Parameters
    ----------
    path : Path
        The file.
    specs : mapping of str to ColumnSpec
        The columns of each argument.
    delimiter : {",", ";", "|", "tab"}, default=","
        What stands between the cells of a CSV file.
    decimal : {".", ","}, default="."
        The decimal mark of its numbers. A point in a number with decimal commas is an error: many write
        thousands so.
    """

    # says where the names of the columns stand, for a kind of file where that can be mistaken
    _names_are = ""

    def __init__(
        self, path: Path, specs: Mapping[str, ColumnSpec], delimiter: str = ",", decimal: str = "."
    ) -> None:
        self._path, self._specs = path, specs
        self._delimiter, self._decimal = delimiter, decimal
        self._pa: Any = import_extra("pyarrow", "cli")
        names = [name for each in specs.values() for name in each.columns]
        self._names = list(dict.fromkeys(names))
        with self._reading():
            self._types = self._read_types()

    def chunks(self, progress: Progress) -> Iterator[Chunk]:
        """Yield the records in chunks; the last one has come only if the whole file could be read."""
        with self._reading():
            for batch in self._batches(progress):
                yield self._arrays({name: batch.column(name) for name in self._names}, self._specs)

    def whole(self, progress: Progress) -> Chunk:
        """Return all records."""
        chunks = [self.no_records(), *self.chunks(progress)]
        # an array without records could have another type than the rest
        chunks = [chunk for chunk in chunks if all(map(len, chunk.values()))] or chunks
        return {
            name: spec.named(np.concatenate([chunk[name] for chunk in chunks]))
            for name, spec in self._specs.items()
        }

    def public(self, progress: Progress) -> Chunk:
        """Return what is public of each record; private cells are not looked at.

        In the place of a private argument are numbers of which nothing can be released.
        """
        specs = {name: spec for name, spec in self._specs.items() if name in PER_RECORD}
        chunks, n = [self._nothing(specs)], 0
        with self._reading():
            for batch in self._batches(progress):
                n += batch.num_rows
                chunks.append(self._arrays({name: batch.column(name) for name in self._names}, specs))
        public = {name: np.concatenate([chunk[name] for chunk in chunks[1:] or chunks]) for name in specs}
        return dict.fromkeys(self._specs, np.full(n, np.nan)) | public

    def no_records(self) -> Chunk:
        """Return a chunk without records."""
        return self._nothing(self._specs)

    def _nothing(self, specs: Mapping[str, ColumnSpec]) -> Chunk:
        return self._arrays({name: self._pa.array([], self._types[name]) for name in self._names}, specs)

    def forms(self) -> dict[str, ArgumentShape]:
        """Return the public form of each argument, before any record is read."""
        return {name: ArgumentShape.of(one, np.asarray(one)) for name, one in self.no_records().items()}

    def _read_types(self) -> dict[str, Any]:
        raise NotImplementedError

    def _batches(self, progress: Progress) -> Iterator[Any]:
        raise NotImplementedError

    def _find(self, there: Sequence[str]) -> None:
        """Raise unless each column is there once; a first line that may be a record is not shown."""
        for name in self._names:
            if there.count(name) != 1:
                number = "no column" if name not in there else "more than one column"
                names = textwrap.shorten(", ".join(map(repr, there)), _MOST_SHOWN, placeholder=" ...")
                hint = f"; it has {names}.{did_you_mean(name, there)}" if self._are_names(there) else ""
                raise CommandError(f"{self._path} has {number} {name!r}{hint or self._names_are}")

    def _are_names(self, there: Sequence[str]) -> bool:
        """Return whether these are surely the names of the columns."""
        return True

    def _arrays(self, columns: dict[str, Any], specs: Mapping[str, ColumnSpec]) -> Chunk:
        chunk = {}
        for argument, spec in specs.items():
            arrays = [self._array(columns[name], name, spec) for name in spec.columns]
            chunk[argument] = spec.named(arrays[0] if len(arrays) == 1 else np.column_stack(arrays))
        return chunk

    def _array(self, column: Any, name: str, spec: ColumnSpec) -> NDArray[Any]:
        if column.null_count:
            raise _missing(name)
        of = self._pa.types
        if of.is_dictionary(column.type):
            column = column.dictionary_decode()
        is_text = of.is_string(column.type) or of.is_large_string(column.type)
        if spec.kind is Kind.LABEL and is_text:
            return self._labels(column, name, spec)
        if spec.kind is Kind.NUMBER and (is_text or of.is_decimal(column.type)):
            return self._numbers(column, name, spec)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _labels(self, column: Any, name: str, spec: ColumnSpec) -> NDArray[Any]:
        """Return the label or id in each cell of text."""
        coded = column.dictionary_encode()
        read = label_reader(spec.labels, self._decimal)
        known = [read(text) for text in coded.dictionary.to_pylist()]
        if any(one is None for one in known):
            raise _missing(name)
        spelled = np.fromiter(known, dtype=object, count=len(known))
        codes: NDArray[np.intp] = coded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return spelled[codes]

    def _numbers(self, column: Any, name: str, spec: ColumnSpec) -> NDArray[Any]:
        """Return the number in each cell of text, or of decimals, which as text become the nearest floats."""
        compute, pa = import_extra("pyarrow.compute", "cli"), self._pa
        text = compute.utf8_trim_whitespace(compute.cast(column, pa.string()))
        if self._decimal == ",":
            # a point becomes what no number holds
            text = compute.replace_substring(compute.replace_substring(text, ".", "?"), ",", ".")
        try:
            numbers = compute.cast(text, pa.float64())
        except pa.ArrowInvalid:
            numbers = None
        if numbers is None:
            if compute.any(compute.is_in(text, value_set=pa.array(sorted(MISSING)))).as_py():
                raise _missing(name)
            for spelled, truth in BOOLEANS.items():
                text = compute.if_else(compute.equal(text, spelled), str(int(truth)), text)
            try:
                numbers = compute.cast(text, pa.float64())
            except pa.ArrowInvalid:
                raise Refusal(
                    f"column {name!r} holds something that is no number{spec.if_text}; nothing was spent"
                ) from None
        if compute.any(compute.is_nan(numbers)).as_py():
            raise _missing(name)
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (self._pa.ArrowException, UnicodeError, csv.Error, EOFError, OSError) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            # the message of the reader quotes the row
            raise Refusal(
                f"{self._path} can't be read: it is damaged or cut off, or not UTF-8, or a row does not have "
                "as many cells as the header; nothing was spent"
            ) from None


class _CsvFile(Predictions):
    """A CSV file: UTF-8, with one line of column names."""

    @property
    def _names_are(self) -> str:  # type: ignore[override]
        mark = repr(self._delimiter)
        return f": its first line must hold the names, with {mark} between them (or pass --delimiter)"

    def _are_names(self, there: Sequence[str]) -> bool:
        # without a line of names the first one is a record, which holds a number or no name that was typed
        return any(name in there for name in self._names) and not any(map(_LIKE_A_NUMBER.fullmatch, there))

    def _read_types(self) -> dict[str, Any]:
        with self._path.open("rb") as raw:
            first = raw.read(2)
        if first in _BOMS_OF_UTF_16 or b"\0" in first:
            raise Refusal(
                f"{self._path} is UTF-16, and not UTF-8: save it as 'CSV UTF-8', or convert it with "
                "iconv -f UTF-16 -t UTF-8; nothing was spent"
            )
        with self._path.open(newline="", encoding="utf-8-sig") as file:
            self._find(next(csv.reader(file, delimiter=_DELIMITERS[self._delimiter]), []))
        return dict.fromkeys(self._names, self._pa.string())

    def _batches(self, progress: Progress) -> Iterator[Any]:
        reader = import_extra("pyarrow.csv", "cli")
        with _WatchedFile(self._path, progress, _DELIMITERS[self._delimiter]) as file:
            yield from reader.open_csv(
                file,
                read_options=reader.ReadOptions(block_size=_CSV_BLOCK),
                # a blank line is a record that is missing: to ignore it would change their number
                parse_options=reader.ParseOptions(
                    delimiter=_DELIMITERS[self._delimiter], newlines_in_values=True, ignore_empty_lines=False
                ),
                convert_options=reader.ConvertOptions(
                    include_columns=self._names,
                    column_types=self._types,
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            if file.has_open_quote:
                raise Refusal(
                    f"{self._path} has an odd number of quotation marks: it may be cut off; nothing was spent"
                )
            if file.has_stray_quotes:
                raise Refusal(
                    f"{self._path} has quotation marks within a cell that are not doubled, so that nobody "
                    "can tell where rows end; nothing was spent"
                )


class _ParquetFile(Predictions):
    """A Parquet file, whose columns have types."""

    def _read_types(self) -> dict[str, Any]:
        schema = import_extra("pyarrow.parquet", "cli").read_schema(self._path)
        self._find(schema.names)
        types = {name: schema.field(name).type for name in self._names}
        for spec in self._specs.values():
            for name in spec.columns:
                self._check_type(name, types[name], spec)
        return types

    def _check_type(self, name: str, found: Any, spec: ColumnSpec) -> None:
        of = self._pa.types
        there = found.value_type if of.is_dictionary(found) else found
        is_number = (
            of.is_floating(there) or of.is_integer(there) or of.is_boolean(there) or of.is_decimal(there)
        )
        is_text = of.is_string(there) or of.is_large_string(there)
        if not (is_number or is_text):
            raise CommandError(f"column {name!r} holds {there}: numbers or text are needed")
        if is_text and spec.kind is Kind.NUMBER:
            raise CommandError(f"column {name!r} holds text: numbers are needed{spec.if_text}")

    def _batches(self, progress: Progress) -> Iterator[Any]:
        reader = import_extra("pyarrow.parquet", "cli")
        with reader.ParquetFile(self._path, buffer_size=_PARQUET_BUFFER, pre_buffer=False) as file:
            rows = max(file.metadata.num_rows, 1)
            for group in range(file.num_row_groups):  # several at once would be held in memory together
                for batch in file.iter_batches(_PARQUET_ROWS, row_groups=[group], columns=self._names):
                    yield batch
                    progress(batch.num_rows / rows)


_SUFFIXES: Mapping[str, type[Predictions]] = {
    ".csv": _CsvFile,
    ".parquet": _ParquetFile,
    ".pq": _ParquetFile,
}


def open_predictions(path: Path, specs: Mapping[str, ColumnSpec], **written: str | None) -> Predictions:
    """Return a file; only the names and types of its columns have been read.

    Parameters
    ----------
    path : Path
        The file.
    specs : mapping of str to ColumnSpec
        The columns of each argument.
    **written : str or None
        `delimiter` and `decimal` of a CSV file; None: as usual.
    """
    marks = {name: mark for name, mark in written.items() if mark is not None}
    kind = path.suffix.lower()
    if kind not in _SUFFIXES:
        raise CommandError(f"{path} is no file of a known kind: {', '.join(_SUFFIXES)}")
    if marks and kind != ".csv":
        raise CommandError(f"{path} is no CSV file: it takes no --delimiter and no --decimal")
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    return _SUFFIXES[kind](path, specs, **marks)


MEDS = {
    "y_true": "boolean_value",
    "y_score": "predicted_boolean_probability",
    "y_pred": "predicted_boolean_value",
    "groups": "subject_id",
}
"""The columns of predictions in the format of MEDS, by argument; a file may lack one of the predictions."""


def columns_of_meds(path: Path) -> dict[str, list[str]]:
    """Return the columns of each argument that a Parquet file has in the format of MEDS."""
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise CommandError(f"{path} is no Parquet file, as --format meds needs")
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    pa, parquet = import_extra("pyarrow", "cli"), import_extra("pyarrow.parquet", "cli")
    try:
        there = parquet.read_schema(path).names
    except (pa.ArrowException, OSError):
        raise Refusal(f"{path} can't be read: it is damaged or cut off; nothing was spent") from None
    return {argument: [column] for argument, column in MEDS.items() if column in there}


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a file is written."""
    between = "what stands between the cells of a CSV file: ',' (default), ';', '|' or tab"
    parser.add_argument(
        "--delimiter", "--sep", type=_delimiter, choices=[*_DELIMITERS], metavar="MARK", help=between
    )
    mark = "decimal mark of the numbers of a CSV file: '.' (default) or ','"
    parser.add_argument("--decimal", choices=[".", ","], metavar="MARK", help=mark)


def _delimiter(text: str) -> str:
    return "tab" if text in ("\t", "\\t") else text


class _WatchedFile(io.RawIOBase):
    """The bytes of a file, which tells whether it ended in a quoted cell, and where cells are quoted.

    A reader takes a quotation mark within a cell as it stands, unless the cell begins with one: then one
    record's mark would swallow the rows up to another's. So each must be at an end of its cell, or doubled.
    """

    def __init__(self, path: Path, progress: Progress, delimiter: str = ",") -> None:
        super().__init__()
        self._file, self._size, self._progress = path.open("rb"), max(path.stat().st_size, 1), progress
        # a quotation mark opens a cell after these, and closes one before them
        self._beside_quotes = np.frombuffer(f'{delimiter}\r\n"'.encode(), dtype=np.uint8)
        self._last, self._quotes, self.has_stray_quotes = b"", 0, False

    @property
    def has_open_quote(self) -> bool:
        """Whether a quoted cell was not closed."""
        return self._quotes % 2 == 1

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        block = self._file.read(-1 if size is None else size)
        self._watch(block)
        self._last = block[-1:] or self._last
        self._progress(len(block) / self._size)
        return block

    def _watch(self, block: bytes) -> None:
        """Count the quotation marks; the first, third and so on open a cell, the others close it."""
        # the last byte of the block before comes first, because its right neighbour is known only now
        after_last = self._last + block if self._last else b"\n" + block.removeprefix(_BOM)
        there = np.frombuffer(after_last, dtype=np.uint8)
        marks = np.flatnonzero(there == _QUOTE)
        is_opening = (np.arange(marks.size) + self._quotes - (self._last == b'"')) % 2 == 0
        opening, closing = marks[is_opening], marks[~is_opening]
        before = there[opening[opening > 0] - 1]
        after = there[closing[closing < there.size - 1] + 1]
        allowed = np.isin(np.concatenate([before, after]), self._beside_quotes)
        self._quotes += block.count(b'"')
        self.has_stray_quotes = self.has_stray_quotes or not allowed.all()

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _missing(name: str) -> Refusal:
    return Refusal(f"column {name!r}: a value is missing; nothing was spent")
