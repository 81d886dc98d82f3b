"""Writers: each carries out one kind of instruction and reports its outcome."""
