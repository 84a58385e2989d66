"""The report of a fit: one plain dictionary (context), and from it an offline page, JSON, a model card and pictures.

A new section is a row of `sections.SECTIONS` and a template; a new picture is a row of `sections.PICTURES`.

Nothing heavy is imported here, so that the command line starts fast.
"""
