"""Private classification metrics, drop-in replacements for those of `sklearn.metrics`."""

from functools import partial

from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from dp_metrics import losses as _losses
from dp_metrics._random import RandomState
from dp_metrics._release import Release
from dp_metrics._validation import MAX_FLOAT, check_labels, check_max_loss, check_probabilities, encode_labels
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = ["private_log_loss"]


def private_log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    max_loss: float | None = None,
    normalize: bool = True,
    mechanism: str | Mechanism = "hazard",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
) -> float:
    """Log loss (cross-entropy) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them; a single
        column holds the probability of the second label. They are used as they are: rows need not sum to 1,
        and no warning tells whether they do.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`.
    max_loss : float or None, default=None
        Public cap of one record's loss, in nats. None: what scikit-learn's clipping of probabilities implies,
        -log(eps) for the float type of `y_proba` (36.04 for float64, 15.94 for float32). A smaller one,
        such as log(1 + exp(10)) for logits restricted to [-10, 10], gives a more accurate answer.
    normalize : bool, default=True
        If false, return the sum of the losses: the private mean times the public n.
    mechanism : str or mechanism object, default="hazard"
        "hazard", "above_threshold", "inverse_sensitivity", "piecewise_laplace" or "laplace", or an object
        such as `AboveThreshold.paper()`.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release
        reproducible and therefore NOT private.

    Returns
    -------
    float
        The private log loss; finite, at least 0.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, or epsilon, labels, max_loss or mechanism is.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, n and the arguments, which are public.

    References
    ----------
    Section 5.1 and Appendix D.2 of D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential
    Privacy", arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_log_loss
    >>> y_true = ["ham", "spam", "spam", "ham"] * 250
    >>> y_proba = [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.65, 0.35]] * 250
    >>> loss = private_log_loss(y_true, y_proba, epsilon=1.0, labels=["ham", "spam"])
    >>> 0.1 < loss < 0.5  # exactly 0.216
    True
    """
    release = Release("private_log_loss", epsilon, mechanism, accountant, random_state)
    cap = check_max_loss(max_loss)
    probabilities, resolution = check_probabilities(y_proba)
    codes = encode_labels(y_true, check_labels(labels, probabilities.shape[1]))
    check_consistent_length(codes, probabilities)
    n = len(codes)
    loss = release.of_mean_loss(
        partial(_losses.log_loss, resolution=resolution),
        (codes, probabilities),
        cap=_losses.log_loss_cap(resolution, cap),
        paper_scale=1.0 / n,  # the paper's cross-entropy is a sum
    )
    return loss if normalize else min(loss * n, MAX_FLOAT)
