"""How big a filter may be.

A filter beyond these limits raises a `LimitError` instead of filling the memory or the stack.
"""

MAX_TEXT = 1_000_000  # characters of one filter
# Nested parentheses or operators; the parser uses up to five of Python's 1,000 frames for each.
MAX_DEPTH = 100
MAX_ATOMS = 20_000  # comparisons, tests and members of IN lists
MAX_NORMAL_NODES = 200_000  # nodes of a normalised filter, which may be larger than the filter
MAX_ARGUMENTS = 10_000  # of one call
MAX_JOINED = 1_000  # attributes in one concatenation, each of which may be long
MAX_REPLACED = 1_000_000  # characters of what `replace` makes; a longer string is null
MAX_PATTERN = 10_000  # characters of one LIKE or RLIKE pattern
# Steps of the program of one RLIKE pattern, with its repetitions ({500}) written out. A character
# of a value takes all of them at worst: a fifth of a second for a value of 1,000 characters.
MAX_PATTERN_STEPS = 20_000
MAX_PADDED = 10_000  # characters that lpad and rpad make
