"""The bound of Theorem 1 (TREE, section 4)."""

import math


def theorem_bound(subscriptions: int, attributes: int, values: int) -> float:
    """The most nodes that a random event visits on average, in a tree of equality tests.

    ``subscriptions`` conjunctions over ``attributes`` K of ``values`` V >= 2 equally likely values
    each. With K' = K + 1 and λ = ln V / (ln V + ln K') (equation 5)::

        C(S) <= V K' (K' |S|^(1-λ) - 1) (ln V + ln K') / ((V K' - 1) ln K')

    It follows from the integral of g(x) = V^K' ((V - 1/K') x + 1)^-λ from 0 to K' |S|, divided by
    V^K, with V K' |S| - |S| + 1 <= V K' |S| and (V K')^(1-λ) = K'. The tree is the one without
    collapsed chains; collapsing only takes nodes away.
    """
    if subscriptions == 0:
        return 0.0
    bar = attributes + 1
    both = math.log(values) + math.log(bar)
    sublinear = math.pow(subscriptions, math.log(bar) / both)
    return values * bar * (bar * sublinear - 1) * both / ((values * bar - 1) * math.log(bar))
