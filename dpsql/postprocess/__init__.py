"""Post-processing: what stands above the releases runs here, in a sealed in-memory DuckDB."""

from .released import ReleasedColumn, ReleasedTable
from .rows import Rows, finish
from .sealed import LONGEST_SECONDS, Limits, SealedEngine
from .simulate import error_bars

__all__ = [
    "LONGEST_SECONDS", "Limits", "ReleasedColumn", "ReleasedTable", "Rows", "SealedEngine", "error_bars", "finish",
]  # fmt: skip
