"""Released results of whole studies: descriptions of groups."""
