from tamis.language.expression import Expression, parse
from tamis.schema import Schema

__version__ = "0.1.0.dev0"
