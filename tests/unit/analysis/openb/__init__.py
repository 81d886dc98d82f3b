"""The parts of the openb experiment."""
