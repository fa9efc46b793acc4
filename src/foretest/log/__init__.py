"""A display log: the roles of its columns, the checks, and the reader that turns batches into arrays."""
