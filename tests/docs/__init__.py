"""Tests of the documents: their shell blocks run, their tables and names are those of the code."""
