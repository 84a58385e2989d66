"""The solvers on a user's own functions: minima, zeros, and the conditions of Karush, Kuhn and Tucker."""
