"""The ``stowage`` command.

The program begins in `program`, which imports `main`.

One module or package per command: ``run`` runs the scheduler, ``config`` checks, shows and converts
configurations.
Other installed distributions add commands through the entry-point group ``stowage.commands``. A
command parses its flags, calls another package, and turns errors into a message and an exit status:
0 success, 1 failure, 2 wrong command line.

`composition` is the only place that connects plugins, engine and shell. Its parts are
`plugin_discovery`, which finds plugins, `profiles`, which makes frameworks, `effective`, which
writes out the effective configuration, and `configurator`, which loads new versions of it.

Invariants:

- No other package imports this one, except for `lazy_commands`, which commands of other
  distributions use.
- Importing `main` imports no command. A command's module is imported when the command is called, or
  listed by ``stowage --help``.
- A command of the scheduler itself hides one of the same name of another distribution.

Rejected: argparse, because help panels and typed options would have to be written by hand.
"""
