"""Expected failures, each with the exit code that the command line gives for it.

    LolDataError            1   anything expected that has no code of its own
    +-- UsageError          2   a wrong option, argument or input file
    +-- DamageError         3   data on disk is not what it should be
    +-- RefusedError        4   locked, or the settings changed

An expected error carries one line: what is wrong and what to do about it.
"""


class LolDataError(Exception):
    """Base of every expected failure."""

    exit_code = 1


class UsageError(LolDataError):
    """The request itself is wrong."""

    exit_code = 2


class DamageError(LolDataError):
    """Stored data is damaged, missing or foreign."""

    exit_code = 3


class RefusedError(LolDataError):
    """Going on would harm what is there: another writer, or changed settings."""

    exit_code = 4
