"""Post-processing: what stands above the releases runs here, in a sealed in-memory DuckDB."""

from .rows import ResultRows, finish
from .sealed import LONGEST_SECONDS, EngineLimits, SealedEngine
from .simulate import error_bars
from .tables import ReleasedColumn, ReleasedTable

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
