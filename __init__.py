"""Checked search traces, Library-of-Layers models, and an evaluation that replays the rules."""

__version__ = "0.1.0"
