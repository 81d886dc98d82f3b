"""Runs the plugins of a profile at each extension point.

`Framework` is the entry point; each ``*_run`` module runs the plugins of one or a few extension
points. Filter and Score keep answers per equivalence class (`class_cache`) and ask plugins again
only about changed rows. `dry_run` and `nominated_filter` filter row-local what-ifs through
`row_filter`. In sampled cycles each extension point and plugin is timed.
"""
