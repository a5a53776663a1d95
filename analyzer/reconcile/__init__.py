"""From the receipts of a run to three verdicts; pure functions of an archive."""
