"""From a syntax tree to a typed one: the environment, the checker and the validators."""
