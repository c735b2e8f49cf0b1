"""What a mechanism sees of public data: for studies of output laws, never for private records."""

from dp_metrics.inputs.epsilon import Epsilon, exact_epsilon
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.queries import MeanLoss, Variance
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["loss_output_bounds", "variance_output_bounds"]


def _as_it_is(block: Floats) -> Floats:
    return block


def loss_output_bounds(
    losses: Floats, *, max_loss: float | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a mean loss."""
    query = MeanLoss(RecordLoss(identity, reads=(_as_it_is,), cap=max_loss), (losses,))
    return query.output_bounds(mechanism, exact_epsilon(epsilon), private_n=False)


def variance_output_bounds(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a variance."""
    return Variance(x, bounds).output_bounds(mechanism, exact_epsilon(epsilon), private_n=False)
