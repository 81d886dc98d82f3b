"""From text to a syntax tree: tokens, literals, grammar and macros."""
