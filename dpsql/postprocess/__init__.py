"""Post-processing: what stands above the releases runs here, in a sealed in-memory DuckDB."""

from .rows import ReleasedColumn, ReleasedTable, ResultRows, finish
from .sealed import LONGEST_SECONDS, EngineLimits, SealedEngine
from .simulate import error_bars

__all__ = [
    "LONGEST_SECONDS",
    "EngineLimits",
    "ReleasedColumn",
    "ReleasedTable",
    "ResultRows",
    "SealedEngine",
    "error_bars",
    "finish",
]
