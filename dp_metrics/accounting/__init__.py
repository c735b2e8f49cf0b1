"""Who pays: the budget, and where its spends are kept, with what they have bought."""

from dp_metrics.accounting.accountant import PrivacyAccountant
from dp_metrics.accounting.ledgers import Spend, StoredResult, StoredResults

__all__ = ["PrivacyAccountant", "Spend", "StoredResult", "StoredResults"]
