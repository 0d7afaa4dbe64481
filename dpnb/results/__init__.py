"""What a release returns: values with intervals and costs, which can be copied and pickled."""
