"""The style of a report: system fonts, one column, light and dark mode, and print."""

LIGHT = """
color-scheme: light; --surface: #ffffff; --panel: #f6f8fa; --ink: #1f2328; --soft: #59636e;
--grid: #e1e5ea; --c0: #0072b2; --c1: #c25400; --c2: #007f5f; --c3: #a8528a;
"""
DARK = """
color-scheme: dark; --surface: #0d1117; --panel: #161b22; --ink: #e6edf3; --soft: #9ba4ae;
--grid: #2a313a; --c0: #56b4e9; --c1: #e69f00; --c2: #2cc295; --c3: #e28fc0;
"""
# The four colours are those of Okabe and Ito, which the colour-blind can tell apart, darker or
# lighter where the background needs it.

_MODES = f"""
:root {{ {LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
"""

_RULES = """
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 3rem 1.5rem 4rem; max-width: 60rem; background: var(--surface);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { margin: 0 0 .5rem; font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; }
h2 { margin: 3.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--grid);
  font-size: 1.375rem; line-height: 1.3; }
h3 { margin: 2.25rem 0 .5rem; font-size: 1rem; }
h1, h2, h3, p, td, dd, dt, li { overflow-wrap: anywhere; }
th { overflow-wrap: break-word; }
p { margin: 0 0 1rem; max-width: 44rem; }
.lead { font-size: 1.125rem; color: var(--soft); }
.note, footer { color: var(--soft); font-size: .875rem; }
footer { margin-top: 4rem; }
.facts { display: flex; flex-wrap: wrap; gap: 1.25rem 3rem; margin: 1.5rem 0; }
.facts div { display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.facts dt { color: var(--soft); font-size: .875rem; }
.facts dd { margin: 0; font-size: 1.75rem; font-weight: 600; line-height: 1.25;
  letter-spacing: -.01em; font-variant-numeric: tabular-nums; }
figure { margin: 0; }
.wide { overflow-x: auto; }
.wide > svg { display: block; width: 100%; min-width: 38rem; height: auto; }
svg text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .grid { stroke: var(--grid); }
svg .base { stroke: var(--soft); }
svg .mark { stroke: var(--soft); stroke-dasharray: 2 3; }
.c0 { fill: var(--c0); --own: var(--c0); }
.c1 { fill: var(--c1); --own: var(--c1); }
.c2 { fill: var(--c2); --own: var(--c2); }
.c3 { fill: var(--c3); --own: var(--c3); }
.line path { fill: none; stroke: var(--own); stroke-width: 2; stroke-linejoin: round; }
.line circle { stroke: var(--surface); stroke-width: 1; }
.dashed path { stroke-dasharray: 6 3; }
.line .spread { stroke: var(--own); stroke-width: 1.5; }
.other path { stroke-dasharray: 2 4; }
.other circle { fill: var(--surface); stroke: var(--own); stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: 0 0 .5rem; padding: 0;
  list-style: none; font-size: .875rem; }
.legend span { display: inline-block; width: 1.25rem; margin-right: .5rem; vertical-align: .25em;
  border-top: 3px solid var(--own); }
.legend .dashed span { border-top-style: dashed; }
.legend .other span { border-top-style: dotted; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { padding: .375rem 1.25rem .375rem 0; border-bottom: 1px solid var(--grid);
  text-align: left; vertical-align: baseline; font-weight: inherit; }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); font-size: .875rem; vertical-align: bottom; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.short { white-space: nowrap; }
.bar { width: 26%; min-width: 5rem; }
.bar svg { display: block; width: 100%; height: .75rem; }
code, pre { font: .8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { margin: 0; padding: 1rem 1.25rem; overflow-x: auto; background: var(--panel);
  border-radius: 6px; tab-size: 4; }
details { margin: .5rem 0 0; font-size: .875rem; }
summary { color: var(--soft); cursor: pointer; width: max-content; }
details table { width: auto; margin-top: .25rem; font-size: .875rem; }
details th, details td { padding: .2rem 2rem .2rem 0; }
@media screen and (max-width: 40rem) { .bar { display: none; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  h1, h2, h3 { break-after: avoid; }
  figure, tr, .facts { break-inside: avoid; }
  details:not([open]) { display: none; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .wide > svg { min-width: 0; }
}
"""

STYLE = _MODES + _RULES
