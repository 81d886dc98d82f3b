"""Defaults of built-in kinds: tables of fields, and functions for what a table cannot say."""
