"""The operations of programs over registers (`term_steps`): their numbers and their names."""

# What `known` says of a value: that it is null, that it is there, or a decimal of over 63 bits.
MISSING, THERE, TOO_LONG = 0, 1, 3

# An input or a constant, both numbered by x; and an output, numbered by y.
LOAD, CONSTANT, STORE = 0, 1, 2
# Of one operand; null where the operand is.
WHOLE_NEGATIVE, WHOLE_ABS, WHOLE_TO_INT32, WHOLE_TO_DOUBLE = 3, 4, 5, 6
DOUBLE_NEGATIVE, DOUBLE_ABS, DOUBLE_SQRT, DOUBLE_ROUND = 7, 8, 9, 10
DOUBLE_FLOOR, DOUBLE_CEIL, DOUBLE_KEY, SAME, NOT, DECIMAL_KEY = 11, 12, 13, 14, 15, 16
# Of two; null where one of them is, and where one divides by zero.
WHOLE_ADD, WHOLE_SUBTRACT, WHOLE_MULTIPLY, WHOLE_DIVIDE, WHOLE_REMAINDER = 17, 18, 19, 20, 21
DOUBLE_ADD, DOUBLE_SUBTRACT, DOUBLE_MULTIPLY, DOUBLE_DIVIDE, DOUBLE_REMAINDER = 22, 23, 24, 25, 26
EQUAL, UNEQUAL, BELOW, AT_MOST = 27, 28, 29, 30
TIME_ADD, TIME_SUBTRACT = 31, 32
DECIMAL_ADD, DECIMAL_SUBTRACT, DECIMAL_MULTIPLY, DECIMAL_TO_DOUBLE = 33, 34, 35, 36
# Each of these has a rule of its own for when it is null.
IS_NULL, IS_TRUE, IS_FALSE, AND, OR, FIRST_PRESENT = 37, 38, 39, 40, 41, 42
WHOLE_GREATEST, WHOLE_LEAST, DOUBLE_GREATEST, DOUBLE_LEAST, CHOICE = 43, 44, 45, 46, 47
FIRST_OF_TWO, FIRST_OF_ITS_OWN = WHOLE_ADD, IS_NULL

# What functions and operators are called in a program: the operation, and how many operands it has.
MOST_OPERANDS = 3
OPERATIONS: dict[str, tuple[int, int]] = {
    "whole negative": (WHOLE_NEGATIVE, 1), "whole abs": (WHOLE_ABS, 1),
    "whole to int32": (WHOLE_TO_INT32, 1), "whole to double": (WHOLE_TO_DOUBLE, 1),
    "double negative": (DOUBLE_NEGATIVE, 1), "double abs": (DOUBLE_ABS, 1),
    "double sqrt": (DOUBLE_SQRT, 1), "double round": (DOUBLE_ROUND, 1),
    "double floor": (DOUBLE_FLOOR, 1), "double ceil": (DOUBLE_CEIL, 1),
    "double key": (DOUBLE_KEY, 1), "decimal key": (DECIMAL_KEY, 1),
    "same": (SAME, 1), "not": (NOT, 1),
    "whole +": (WHOLE_ADD, 2), "whole -": (WHOLE_SUBTRACT, 2), "whole *": (WHOLE_MULTIPLY, 2),
    "whole DIV": (WHOLE_DIVIDE, 2), "whole %": (WHOLE_REMAINDER, 2),
    "double +": (DOUBLE_ADD, 2), "double -": (DOUBLE_SUBTRACT, 2),
    "double *": (DOUBLE_MULTIPLY, 2), "double /": (DOUBLE_DIVIDE, 2),
    "double %": (DOUBLE_REMAINDER, 2),
    "decimal +": (DECIMAL_ADD, 2), "decimal -": (DECIMAL_SUBTRACT, 2),
    "decimal *": (DECIMAL_MULTIPLY, 2), "decimal to double": (DECIMAL_TO_DOUBLE, 2),
    "time +": (TIME_ADD, 2), "time -": (TIME_SUBTRACT, 2),
    "=": (EQUAL, 2), "<>": (UNEQUAL, 2), "<": (BELOW, 2), "<=": (AT_MOST, 2),
    "is null": (IS_NULL, 1), "is true": (IS_TRUE, 1), "is false": (IS_FALSE, 1),
    "and": (AND, 2), "or": (OR, 2), "first present": (FIRST_PRESENT, 2),
    "whole greatest": (WHOLE_GREATEST, 2), "whole least": (WHOLE_LEAST, 2),
    "double greatest": (DOUBLE_GREATEST, 2), "double least": (DOUBLE_LEAST, 2),
    "choice": (CHOICE, 3),
}  # fmt: skip
