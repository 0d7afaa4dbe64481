"""The curator's commands, outside any session: a draft of a declaration, its check, statements and audits."""
