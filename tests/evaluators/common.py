"""What the tests of decoding and of templates share: an untrained maze model whose routes and outputs vary."""

import torch

from lol_data.model.config import ModelConfig
from lol_data.model.lol import LibraryOfLayers
from lol_data.tokenization.maze import VOCABULARY_SIZE, MazeLayout


def maze_model(size, seed=0) -> LibraryOfLayers:
    layout = MazeLayout(size, field=2)
    config = ModelConfig(
        vocabulary=VOCABULARY_SIZE,
        prompt=layout.prompt_length,
        field=2,
        width=16,
        heads=2,
        hidden=24,
        prelude=1,
        blocks=4,
        depth=3,
        coda=1,
        window=8,
        shift=4,
    )
    generator = torch.Generator().manual_seed(seed)
    model = LibraryOfLayers(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name == "router.weight":
                noise *= 0.1
            elif parameter.ndim == 2 and "embedding" not in name:
                noise *= 0.8 * parameter.shape[1] ** -0.5
            parameter.copy_(noise + 1 if "norm" in name or name == "film_scale" else noise)
        tokens = torch.randint(VOCABULARY_SIZE, (16, layout.prompt_length + 20), generator=generator)
        probabilities = torch.cat([choice.probabilities for choice in model(tokens)[1]], 1)
        model.router.bias -= probabilities.mean((0, 1))  # else one block would win nearly every window
    return model
