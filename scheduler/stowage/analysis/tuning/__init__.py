"""What a search for a better configuration needs to know, without the search itself.

`arrival_parts` splits a workload into the arrivals that are searched on and those that are held
back, `objectives` says what is better, `search_space` which settings of a profile are tried, and
makes configurations of them. All of it is pure; `stowage.experiments.search` searches.
"""
