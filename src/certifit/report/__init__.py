"""The report of a fit: one plain dictionary (context), pictures of it, and one offline page.

Nothing heavy is imported here, so that the command line starts fast.
"""
