"""`dpsql studio`: SQL and its price in one page, for the analyst; what was asked and what is left, for the owner.

House rules:

1. While somebody types, nothing is read of people's tables and no connection to their database is opened
   (`desk.TypingSession`): a price comes from the text, the policy, the schema and the ledger.
2. A seat (`desk.Seat`) is one analyst's. What its endpoints tell is what EXPLAIN, the answers and the ledger tell this
   analyst; what is the owner's is asked of seats of the owner alone (`server.OWNER`).
3. One module an endpoint group, one file a view (`page/views/`). An endpoint is a function of a seat and of what was
   sent, and returns what is sent back as JSON; it knows nothing of HTTP.
4. Names, statements and values are other people's text: the page puts them there as text nodes, never as markup, and
   its Content-Security-Policy has no inline script, no eval, and nothing from elsewhere.
"""
