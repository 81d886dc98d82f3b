"""Stories of preemption: victims, evictions, nominations, and the retry of the preemptor."""
