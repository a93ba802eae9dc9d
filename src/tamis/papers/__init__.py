"""The tables and figures of the four papers, run again, with a verdict on each claim.

In: `experiments/*.toml`, one file for each table or figure (what is measured, how large, what the
paper claims and which rule decides), and `published/*.toml`, the papers' own numbers. Out: one
record for each experiment, from which verdicts, pages and Markdown are made, and nothing else is.

`experiment` reads the files, `run` measures with the functions of `procedures/`, `rules` and
`verdicts` decide, `pictures`, `page` and `markdown` show.
"""
