"""A judgement as one screen and as a page in Markdown, in English and Chinese."""
