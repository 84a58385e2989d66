"""The table of the course: where each part has its chapter, its example and its test."""

def page() -> str:
    """The page."""
    return "# Coverage\n"
