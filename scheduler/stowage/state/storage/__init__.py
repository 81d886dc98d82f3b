"""Claims, volumes, storage classes and CSI objects, and what nodes hold of them."""
