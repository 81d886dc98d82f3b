"""Builds profiles from the configuration: the plugins that run, their order, weights and arguments.

`points` names the extension points; `registry` knows the plugins that exist and their arguments;
`profile` merges the defaults of v1.36 with one entry of ``profiles`` and constructs the plugins.
"""
