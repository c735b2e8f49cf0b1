"""Who pays: the budget, and where its spends are kept, with what they have bought."""

from dp_metrics.accounting.accountant import PrivacyAccountant
from dp_metrics.accounting.ledgers import StoredResult, StoredResults
from dp_metrics.accounting.spends import Spend

__all__ = ["PrivacyAccountant", "Spend", "StoredResult", "StoredResults"]
