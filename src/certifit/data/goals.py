"""Names of what a target may ask for; see `certifit.data.target`."""

QUANTITY, COUNTS, POSITIVE, CLASSES = "quantity", "counts", "positive", "classes"
TASKS = {QUANTITY: "a quantity", COUNTS: "counts", POSITIVE: "a positive quantity", CLASSES: "classes"}  # in words
