"""From JSON bytes to API objects, with errors that name the field."""
