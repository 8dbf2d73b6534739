"""The rows of a table over all of its files, read a column of a row group at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agentsim.errors import ResultsError
from agentsim.results.columns import to_numpy

_KEPT_BYTES = 256 * 1024 * 1024
_OPEN_FILES = 16

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One row group of a file."""

    path: Path
    group: int
    rows: int


class Pieces:
    """A table in row groups. Close it, or use it in a `with`.

    What was read last is kept, up to a quarter of a gibibyte.

    Args:
        paths: Parquet files, in order.

    Raises:
        ResultsError: a file cannot be read.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._open: OrderedDict[Path, pq.ParquetFile] = OrderedDict()
        self._kept: OrderedDict[tuple[int, str], pa.Array[Any]] = OrderedDict()
        self._kept_bytes = 0
        self._pieces: list[_Piece] = []
        self.names: list[str] = []
        for path in paths:
            file = self._file(path)
            self.names += [name for name in file.schema_arrow.names if name not in self.names]
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                self._pieces.append(_Piece(path, group, rows))
        self.starts: Rows = np.cumsum([0, *(piece.rows for piece in self._pieces)])

    def __enter__(self) -> Pieces:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def __len__(self) -> int:
        """How many rows."""
        return int(self.starts[-1])

    def places(self, rows: Rows) -> Rows:
        """In which row group each row is."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def numbers(self, name: str) -> NDArray[Any]:
        """A whole column of numbers without nulls."""
        columns = [to_numpy(column) for column in self.column(name)]
        return np.concatenate(columns) if columns else np.empty(0, np.int64)

    def column(self, name: str) -> Iterator[pa.Array[Any]]:
        """A whole column, a row group at a time."""
        return (self.piece(place, name) for place in range(len(self._pieces)))

    def value(self, row: int, name: str) -> Any:
        """One cell."""
        place = int(self.places(np.array([row]))[0])
        return self.piece(place, name)[row - int(self.starts[place])].as_py()

    def piece(self, place: int, name: str) -> pa.Array[Any]:
        """The column of one row group; texts in types of 64-bit offsets, nothing as dictionary.

        Raises:
            ResultsError: it cannot be read.
        """
        key = (place, name)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        piece = self._pieces[place]
        try:
            if name in (file := self._file(piece.path)).schema_arrow.names:
                column = file.read_row_group(piece.group, columns=[name]).column(0)
                array = _plain(column)
            else:
                array = pa.nulls(piece.rows)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(piece.path, error) from error
        self._kept[key] = array
        self._kept_bytes += array.nbytes
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        return array

    def _file(self, path: Path) -> pq.ParquetFile:
        if path not in self._open:
            while len(self._open) >= _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
            try:
                self._open[path] = pq.ParquetFile(path)
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(path, error) from error
        return self._open[path]


def _plain(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    type = _plain_type(column.type)
    if type != column.type:
        column = column.cast(type)
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _plain_type(type: pa.DataType) -> pa.DataType:
    """The same with 64-bit offsets, so that any number of rows can be put together."""
    if isinstance(type, pa.DictionaryType):
        return _plain_type(type.value_type)
    if pa.types.is_string(type):
        return pa.large_string()
    if isinstance(type, pa.ListType):
        return pa.large_list(_plain_type(type.value_type))
    if isinstance(type, pa.StructType):
        fields = [type.field(i) for i in range(type.num_fields)]
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in fields])
    return type


def _unreadable(path: Path, error: Exception) -> ResultsError:
    return ResultsError(f"{path}: cannot read the table: {error}")
