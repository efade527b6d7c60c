"""The owner's report: what the ledger, the stored releases and the policy say, as one file that is complete in itself.

House rules:

1. No row is read and nothing is charged: numbers are the ledger's, a stored release's or the policy's.
2. Statements and names are other people's text: they are escaped (`write.text`), never markup.
3. The file needs nothing from elsewhere, and its Content-Security-Policy forbids it.
"""
