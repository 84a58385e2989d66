"""Goals: what a target may ask for; `data/target.py` finds out which. Plain names, importable without NumPy."""

QUANTITY, COUNTS, POSITIVE, CLASSES = "quantity", "counts", "positive", "classes"
GOALS = {QUANTITY: "a quantity", COUNTS: "counts", POSITIVE: "a positive quantity", CLASSES: "classes"}  # in words
