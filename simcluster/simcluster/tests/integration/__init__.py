"""Tests of the simulated cluster over HTTP."""
