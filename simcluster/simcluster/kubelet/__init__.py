"""Simulated kubelets and the nodes they run on."""
