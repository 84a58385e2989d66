"""Candidates and models side by side, and which of them wins."""
