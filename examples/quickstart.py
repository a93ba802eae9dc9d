"""Subscriptions in, events in, matches out."""

import tamis

schema = tamis.Schema({"company": "string", "product": "string", "price": "double"})
m = tamis.Matcher(schema)
m.subscribe("alice", "company IN ('IBM', 'Dell') AND product LIKE '%PC%' AND price <= 1000")
m.subscribe_many([("bob", "price BETWEEN 5 AND 10"), ("eve", "company IS NULL")])

event = {"company": "IBM", "product": "PC AT", "price": 900}
print("matched:", m.match(event))
print()
print(m.why("bob", event))

m.unsubscribe("bob")
print()
print("left:", list(m))
