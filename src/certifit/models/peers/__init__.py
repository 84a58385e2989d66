"""Models of other libraries: the same model in certifit, with the right units, and the proof of their fits."""
