"""Value types of the API: quantities, selectors, tolerations, resources, durations."""
