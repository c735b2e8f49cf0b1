"""Who pays: the budget, and where its spends are kept, with what they have bought."""

from dp_metrics.accounting.accountant import (
    PrivacyAccountant,
    answer_named,
    check_accountant,
    claimed,
    keep,
    numbering,
    use_name,
)
from dp_metrics.accounting.results import StoredResult, StoredResults
from dp_metrics.accounting.spends import Claim, Spend

__all__ = [
    "Claim",
    "PrivacyAccountant",
    "Spend",
    "StoredResult",
    "StoredResults",
    "answer_named",
    "check_accountant",
    "claimed",
    "keep",
    "numbering",
    "use_name",
]
