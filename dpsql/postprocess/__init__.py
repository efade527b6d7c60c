"""Post-processing: what stands above the releases runs here, in a sealed in-memory DuckDB."""

from .released import ReleasedColumn, ReleasedTable
from .rows import Rows, finish
from .sealed import Limits, SealedEngine
from .simulate import error_bars

__all__ = ["Limits", "ReleasedColumn", "ReleasedTable", "Rows", "SealedEngine", "error_bars", "finish"]
