"""What keeps the pipeline from working, in words that say what to do."""


class PipelineFailed(Exception):
    """It cannot be done; the text is for people."""
