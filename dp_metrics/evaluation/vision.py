"""A small convolutional network for the CIFAR-10 experiment; needs the `vision` extra (torch)."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.evaluation.extras import import_extra

__all__ = ["cnn_logits"]

_BATCH = 64


def _network(nn: Any, classes: int) -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128), nn.ReLU(),
        nn.Linear(128, 64), nn.ReLU(),
        nn.Linear(64, classes),
    )  # fmt: skip


def cnn_logits(
    x_train: NDArray[np.uint8],
    y_train: NDArray[np.int64],
    x_test: NDArray[np.uint8],
    *,
    seed: int,
    epochs: int = 10,
    progress: bool = True,
) -> NDArray[np.float64]:
    """Train three convolutions with pooling and three dense layers; return the logits of the test images.

    Parameters
    ----------
    x_train, x_test : ndarray of shape (n, 32, 32, 3)
        uint8 RGB.
    y_train : ndarray of shape (n_train,)
        Class numbers.
    seed : int
        Seed of the weights and the batches. Results also depend on the version of torch.
    epochs : int, default=10
        Passes over the training images.
    progress : bool, default=True
        Whether to show a progress bar on standard error.

    Returns
    -------
    ndarray of shape (n_test, n_classes)
        Logits, not clipped.

    Raises
    ------
    MissingExtraError
        If torch or tqdm is missing.
    """
    torch = import_extra("torch")
    tqdm = import_extra("tqdm").tqdm

    def images(x: NDArray[np.uint8]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).float() / 127.5 - 1.0

    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _network(torch.nn, int(y_train.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs, labels = images(x_train), torch.from_numpy(np.asarray(y_train, dtype=np.int64))
    steps = epochs * -(-len(x_train) // _BATCH)
    with tqdm(
        total=steps, desc="training the CNN", unit="batch", file=sys.stderr, disable=not progress
    ) as bar:
        for _ in range(epochs):
            for batch in torch.randperm(len(x_train), generator=generator).split(_BATCH):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
                optimizer.step()
                bar.update()
    model.eval()
    with torch.no_grad():
        parts = [model(part) for part in images(x_test).split(1000)]
    return np.asarray(torch.cat(parts).double().numpy(), dtype=np.float64)
