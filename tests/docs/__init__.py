"""Tests of the documents: shell blocks run, and tables and names match the code."""
