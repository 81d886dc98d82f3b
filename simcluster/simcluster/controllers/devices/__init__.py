"""Claims of devices: made from templates, released and deallocated when their pods end."""
