"""The door: everything a person types, and what is printed back.

One module or package a command. A command reads its flags, calls one room (`operator` for ``run``,
`cluster` for ``cluster``) and turns what goes wrong into a sentence and an exit status: 0 it did
what was asked, 1 it could not, 2 the command line is wrong.

``demo`` and ``bench`` use the product from outside: they start ``cluster`` and ``run`` as
processes of their own and talk to them over HTTP, as a user does. What they report is therefore
what a watch on the API server saw, never what the scheduler says of itself.

Nothing imports this room. A command's module is imported when somebody asks for the command
(``on_demand``), modules of heavy rooms when it runs: ``stowage --help`` answers at once, and
``run`` pays for nothing it does not use. argparse was rejected: help panels and typed options
would have had to be written by hand.
"""
