"""Which model a configuration makes."""

from lol_data.model.config import ModelConfig
from lol_data.model.fixed_path import FixedPath
from lol_data.model.lol import LibraryOfLayers
from lol_data.model.transformer import Transformer


def make_model(config: ModelConfig) -> Transformer:
    """A new model; raises UsageError for a configuration that contradicts itself."""
    return (FixedPath if config.router == "fixed" else LibraryOfLayers)(config)
