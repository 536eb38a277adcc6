"""Search strategies, one file each: what a step is, the canonical tie-break, and the tracer."""

from lol_data.solvers.tracing import trace_mazes

__all__ = ["trace_mazes"]
