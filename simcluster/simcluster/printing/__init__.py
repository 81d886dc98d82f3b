"""Table answers: the columns that ``kubectl get`` prints."""
