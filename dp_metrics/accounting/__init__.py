"""Who pays: the budget, and where its spends are kept."""

from dp_metrics.accounting.accountant import PrivacyAccountant, check_accountant
from dp_metrics.accounting.spends import Spend

__all__ = ["PrivacyAccountant", "Spend", "check_accountant"]
