"""From a task to a state."""
