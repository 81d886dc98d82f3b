"""The clusters that the console is asked about: a running one, one of files, one of a recording."""
