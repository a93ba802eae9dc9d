"""One event without a price, and what the four semantics make of it."""

import tamis

schema = {"company": "string", "price": "double"}
filters = {
    "cheap": "price < 1000",
    "any price": "price < 1000 OR price >= 1000",
    "not cheap": "NOT price < 1000",
    "no price": "price IS NULL",
    "IBM": "company = 'IBM'",
}
event = {"company": "IBM"}

for semantics in ("sql", "strict", "default", "total"):
    defaults = {"company": "", "price": -1} if semantics == "default" else None
    matcher = tamis.Matcher(schema, semantics=semantics, defaults=defaults)
    matcher.subscribe_many(filters)
    try:
        print(f"{semantics:<8} {matcher.match(event)}")
    except tamis.EventError as error:
        print(f"{semantics:<8} {error}")
