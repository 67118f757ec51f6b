"""What the operator is told not to publish."""

SCREEN_ONLY = "For this screen only: together with the served arm, the probabilities reveal deleted rewards."
OPERATOR_ONLY = "For the operator only: published before and after a deletion, this reveals what was deleted."
