"""Pod groups over HTTP: scenarios that were played against kube-scheduler, as plain data."""
