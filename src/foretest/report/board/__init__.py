"""One page of all results in a folder: which files they are, what each says, offline beside online, and the page."""
