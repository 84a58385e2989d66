"""Pens of the sections with many pictures: functions from the context to SVG text."""
