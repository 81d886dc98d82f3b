"""The decisions that the console shows: as a scheduler recorded them, or as watches show them."""
