"""Methods of a frame for whole studies: descriptions of groups, survival."""
