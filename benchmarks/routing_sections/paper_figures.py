"""The figures of MBD, section 6, that are printed beside ours.

They were measured on a 3 GHz Xeon with Java 1.4. Figs. 12 to 15 are drawings; the numbers here are
those that the paper's text gives for them.
"""

SIZE = 200_000  # subscriptions, unless another number is given
COVERED = {"mbd-a": 0.75, "mbd-b": 0.45}
RANDOM_ORDER = 6_076  # more entries after perfect merging than with the order that is given
ONE_PASS = 0.458  # "a speed up of 45.8 %" over two passes
ASSIGNMENT = {True: 2.46, False: 23.41}  # ms at 5,000 predicates, with and without the cache
MERGED = 32_852  # entries left of 100,000 by covering and perfect merging
MERGED_SIZE = 100_000
FALSE_POSITIVES = 0.025  # at most, of publications, with an IMT below 0.1

# Table 2: ms per publication.
ROUTING = {
    ("mbd-a", "none"): {"mbd": 68.73, "naive": 300.71},
    ("mbd-a", "covering"): {"mbd": 19.16, "naive": 73.41},
    ("mbd-a", "perfect"): {"mbd": 13.31, "naive": 49.89},
    ("mbd-a", "imperfect"): {"mbd": 9.96, "naive": 43.83},
    ("mbd-b", "none"): {"mbd": 82.28, "naive": 300.92},
    ("mbd-b", "covering"): {"mbd": 38.15, "naive": 165.38},
    ("mbd-b", "perfect"): {"mbd": 33.37, "naive": 152.21},
    ("mbd-b", "imperfect"): {"mbd": 29.19, "naive": 141.06},
}
