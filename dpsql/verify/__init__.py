"""A second look at each plan: what is printed is checked by a program that shares no code with what printed it.

House rules:

1. Nothing of dpsql is imported here but `dpsql.errors`, and of third parties sqlglot alone. What is proved, is
   proved of the very text that the database gets, from facts that are read of the live schema and of the policy.
2. A form for which there is no rule is refused, by the name of the rule that is missing. No rule lists what is
   forbidden.
3. A rule's docstring says its premise, its conclusion, and why (soundness.md 5.6).
"""

from dpsql.verify.check import Checked, Verified, verify
from dpsql.verify.terms import Refused

__all__ = ["Checked", "Refused", "Verified", "verify"]
