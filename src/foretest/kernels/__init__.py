"""The numba loops. Each works on plain arrays and releases the GIL; NumPy versions live in the tests."""
