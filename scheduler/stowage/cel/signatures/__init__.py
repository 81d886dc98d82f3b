"""Static types, and declarations of functions in terms of them."""
