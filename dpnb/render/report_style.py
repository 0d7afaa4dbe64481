"""The style sheet of a disclosure statement as a page: on a screen, light and dark, on a phone, and on A4."""

from __future__ import annotations

import base64
import hashlib

CSS = """
:root { color-scheme: light dark; --text: #1b1b1b; --faint: #555; --line: #c8c8c8; --paper: #fff; --soft: #f4f5f7;
  --accent: #0b57a4; --alarm: #a31515; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --faint: #b4b4b4; --line: #4a4a4a; --paper: #16181b;
  --soft: #212429; --accent: #8ab8f0; --alarm: #ff9d94; } }
* { box-sizing: border-box; }
html { background: var(--paper); }
body { margin: 0; background: var(--paper); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 46rem; }
.subject { font-size: 1.1rem; color: var(--faint); }
.notice { border: 2px solid var(--alarm); color: var(--alarm); padding: .6rem .9rem; font-weight: 600; }
.promise { border-left: 4px solid var(--accent); padding: .25rem 0 .25rem 1rem; font-size: 1.1rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { color: var(--faint); font-weight: 600; overflow-wrap: normal; }
.facts th { width: 13rem; font-weight: 600; }
.scroll table { min-width: 44rem; }
ul { margin: .5rem 0; padding-left: 1.25rem; max-width: 46rem; } li { margin: .3rem 0; }
.number { text-align: right; white-space: nowrap; width: 3rem; }
.short { white-space: nowrap; }
.wide { min-width: 14rem; }
pre { background: var(--soft); border: 1px solid var(--line); padding: .75rem; font-size: .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
code { font-size: .875em; overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; padding-top: .75rem; border-top: 1px solid var(--line); color: var(--faint);
  font-size: .875rem; }
@media (max-width: 40rem) { main { padding: 1.25rem 1rem 3rem; } .facts th { width: 8.5rem; } }
@page { size: A4; margin: 18mm 16mm 20mm; @bottom-right { content: counter(page) " / " counter(pages); } }
@media print { :root { color-scheme: light; --text: #000; --faint: #333; --line: #999; --paper: #fff; --soft: #fff;
    --accent: #000; --alarm: #000; }
  body { font-size: 10.5pt; line-height: 1.4; } main { max-width: none; padding: 0; }
  h1 { font-size: 18pt; } h2 { font-size: 13pt; } p { max-width: none; orphans: 3; widows: 3; }
  .promise, .subject { font-size: 11pt; } table { font-size: 8.5pt; } pre { font-size: 8pt; border-width: .5pt; }
  h2, caption, thead { break-after: avoid; } tr, .notice, .promise { break-inside: avoid; }
  thead { display: table-header-group; } .scroll { overflow: visible; } .scroll table, .wide { min-width: 0; }
  ul { max-width: none; } }
"""

POLICY = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'"
)
"""The page loads nothing and runs nothing; only this style sheet applies."""
