#pragma once
/// The style sheet of the report.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* style = R"css(
:root {
  color-scheme: light;
  --page: #fafaf9; --surface: #ffffff; --sunken: #f2f3f4; --line: #e2e5e9; --line-strong: #c6ccd3;
  --text: #1c2127; --muted: #59636e; --accent: #1f66b1; --good: #1d7a4c; --bad: #b3261e; --bad-surface: #fdf0ee;
  --k0: #4a86bf; --k1: #7b6fb5; --k2: #b98428; --k3: #2f9485; --k4: #c05a74; --k5: #7fb3de; --k6: #a79fd4;
  --m0: #4a86bf; --m1: #7b6fb5; --m2: #b98428; --m3: #2f9485; --m4: #b8576b; --m5: #97a1ac;
  --t0: #2f9485; --t1: #7b6fb5; --t2: #b98428; --t3: #c05a74;
  --class-l: 87%; --class-s: 52%; --n0: #d3dae1; --n1: #e0a73a; --n2: #b3261e;
}
:root[data-theme="dark"] {
  color-scheme: dark;
  --page: #131619; --surface: #1a1e22; --sunken: #22272c; --line: #2c3238; --line-strong: #464e57;
  --text: #e4e8ec; --muted: #9ba6b1; --accent: #78b0ee; --good: #6cc79a; --bad: #f2938c; --bad-surface: #341d1c;
  --k0: #5b9bd6; --k1: #9186cf; --k2: #d09c46; --k3: #45ac9c; --k4: #d5738c; --k5: #3f6f9c; --k6: #5f5690;
  --m0: #5b9bd6; --m1: #9186cf; --m2: #d09c46; --m3: #45ac9c; --m4: #d98598; --m5: #77828d;
  --t0: #45ac9c; --t1: #9186cf; --t2: #d09c46; --t3: #d5738c;
  --class-l: 32%; --class-s: 34%; --n0: #3a434c; --n1: #b98428; --n2: #ff8a7d;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { scroll-padding-top: 56px; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word;
}
.wrap { max-width: 1240px; margin: 0 auto; padding: 0 24px; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -9999px; }
.skip:focus { left: 8px; top: 8px; background: var(--surface); padding: 8px 12px; z-index: 20; }
.quiet { color: var(--muted); }
.mono { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 0.9em; }

nav { position: sticky; top: 0; z-index: 10; background: var(--page); border-bottom: 1px solid var(--line); }
nav .wrap { display: flex; align-items: center; gap: 20px; height: 44px; }
nav .links { display: flex; gap: 20px; overflow-x: auto; flex: 1; scrollbar-width: none; white-space: nowrap; }
nav .links::-webkit-scrollbar { display: none; }
nav .links a { color: var(--muted); font-size: 14px; padding: 10px 0; }
nav .links a:hover, nav .links a[aria-current] { color: var(--text); text-decoration: none; }
nav .links a[aria-current] { box-shadow: inset 0 -2px var(--accent); }

header { padding: 40px 0 8px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -0.015em; margin: 0 0 6px; }
h2 { font-size: 19px; font-weight: 650; letter-spacing: -0.005em; margin: 0 0 4px; }
h3 { font-size: 14px; font-weight: 600; margin: 24px 0 8px; }
section { padding: 36px 0 4px; }
section > p { margin: 0 0 16px; color: var(--muted); max-width: 96ch; text-wrap: pretty; }

.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(168px, 1fr)); margin: 28px 0 8px; border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); }
.figure { padding: 16px 20px 14px 0; }
.figure + .figure { border-left: 1px solid var(--line); padding-left: 20px; }
.figure .value { white-space: nowrap; font-size: 27px; line-height: 1.25; font-weight: 620; letter-spacing: -0.015em; }
.figure .value small { font-size: 15px; font-weight: 500; color: var(--muted); letter-spacing: 0; margin-left: 3px; }
.figure .label { color: var(--muted); font-size: 13px; }
.warn { margin: 20px 0 0; padding: 10px 14px; border-left: 3px solid var(--bad); background: var(--bad-surface); }
.notes { margin: 20px 0 0; padding-left: 18px; color: var(--muted); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); gap: 0 32px; margin: 12px 0 0; }
.facts div { display: flex; justify-content: space-between; gap: 16px; padding: 5px 0; border-bottom: 1px solid var(--line); }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; text-align: right; min-width: 0; overflow-wrap: anywhere; }
details > summary { cursor: pointer; color: var(--muted); width: fit-content; }
details > summary:hover { color: var(--text); }

.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 500; font-size: 13px; color: var(--muted); padding: 6px 16px 6px 0; border-bottom: 1px solid var(--line-strong); white-space: nowrap; vertical-align: bottom; }
td { padding: 8px 16px 8px 0; border-bottom: 1px solid var(--line); vertical-align: middle; }
th.n, td.n { text-align: right; white-space: nowrap; padding-right: 24px; }
.strategies .n { padding-right: 16px; }
th:last-child, td:last-child { padding-right: 0; }
tr.found td { font-weight: 600; }
tr.found td:first-child { box-shadow: inset 3px 0 var(--accent); padding-left: 12px; }
.strategies td:first-child, .strategies th:first-child { padding-left: 12px; }
td .bar { display: block; height: 6px; border-radius: 3px; background: var(--k0); min-width: 2px; }
td .track { display: block; height: 6px; border-radius: 3px; background: var(--sunken); overflow: hidden; min-width: 72px; }
tr:not(.found) td .bar { opacity: 0.55; }
.stack { display: flex; height: 10px; border-radius: 3px; overflow: hidden; background: var(--sunken); min-width: 120px; }
.stack i { display: block; height: 100%; }
.stack i + i { box-shadow: -1px 0 var(--surface); }
.good { color: var(--good); } .bad { color: var(--bad); }

.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--muted); align-items: center; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.legend i { width: 11px; height: 11px; border-radius: 2px; display: inline-block; flex: none; }
.tools { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; margin: 10px 0; font-size: 13px; }
.tools .space { flex: 1; }
.tools label { display: inline-flex; align-items: center; gap: 6px; color: var(--muted); }
button, select, input[type="search"] {
  font: inherit; font-size: 13px; color: var(--text); background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px; padding: 4px 10px; min-height: 30px;
}
button { cursor: pointer; }
button:hover, select:hover { border-color: var(--muted); }
.group { display: inline-flex; }
.group button { border-radius: 0; margin-left: -1px; min-width: 34px; }
.group button:first-child { border-radius: 6px 0 0 6px; margin-left: 0; }
.group button:last-child { border-radius: 0 6px 6px 0; }
.group button[aria-pressed="true"] { background: var(--sunken); font-weight: 600; }
input[type="search"] { width: min(340px, 100%); }

.panel { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; position: relative; }
canvas { display: block; }
#overview { width: 100%; height: 48px; border-bottom: 1px solid var(--line); cursor: ew-resize; touch-action: pan-y; }
#timeline { max-height: 640px; overflow-y: auto; position: relative; cursor: grab; touch-action: pan-y; overscroll-behavior: auto; }
#timeline:active { cursor: grabbing; }
#timeline:focus-visible { outline-offset: -2px; }
#timeline canvas { position: sticky; top: 0; left: 0; }
.tip {
  position: fixed; z-index: 30; max-width: 340px; pointer-events: none; background: var(--text); color: var(--page); padding: 8px 11px; border-radius: 6px; font-size: 13px; line-height: 1.42; box-shadow: 0 4px 18px rgb(0 0 0 / 0.18);
}
.tip b { display: block; font-weight: 600; }
.tip dl { display: grid; grid-template-columns: auto 1fr; gap: 0 12px; margin: 3px 0 0; }
.tip dt { opacity: 0.72; } .tip dd { margin: 0; }
.chosen { min-height: 21px; margin: 8px 0 0; font-size: 13px; color: var(--muted); }

.memory { display: grid; grid-template-columns: minmax(90px, max-content) 1fr max-content; gap: 7px 16px; align-items: center; font-size: 14px; }
.memory .lane { position: relative; height: 16px; }
.memory .stack { height: 16px; background: none; border-radius: 2px; min-width: 0; }
.memory .cap { position: absolute; top: -4px; bottom: -4px; width: 2px; background: var(--text); }
.memory .n { text-align: right; }
#curve svg { display: block; width: 100%; height: auto; }
#curve text { fill: var(--muted); font-size: 12px; }
#net { touch-action: pan-y; }
#net svg { display: block; margin: 0 auto; max-width: 100%; height: auto; user-select: none; }
#net .way, #net .marked { fill: none; }
#net .marked { stroke: var(--text); stroke-width: 2.5; pointer-events: none; }
#net .vertex { fill: var(--surface); stroke: var(--muted); stroke-width: 1.5; }
#net text { fill: var(--muted); font-size: 10.5px; }
.legend i.ramp { width: 140px; height: 10px; }
#graph { cursor: grab; touch-action: pan-y; }
#graph:active { cursor: grabbing; }
#graph svg { width: 100%; height: 100%; display: block; user-select: none; }
#graph .node rect { stroke: var(--line-strong); stroke-width: 1; }
#graph .node text { fill: var(--text); font-size: 12px; }
#graph .node .sub { fill: var(--text); opacity: 0.72; font-size: 10.5px; }
#graph .node.picked rect { stroke: var(--text); stroke-width: 2.5; }
#graph .edge { fill: none; stroke: var(--line-strong); stroke-width: 1.2; }
#graph .edge.picked { stroke: var(--accent); stroke-width: 2; }
#graph .frame { fill: var(--sunken); stroke: var(--line-strong); stroke-dasharray: 4 3; }
#graph .times { fill: var(--muted); font-size: 12px; font-weight: 600; }
#graph .far text { display: none; }
#map { position: absolute; right: 10px; top: 10px; bottom: 10px; background: var(--surface); border: 1px solid var(--line); border-radius: 4px; cursor: pointer; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 8px; vertical-align: -1px; border: 1px solid var(--line-strong); }
.operators tbody tr { cursor: pointer; }
.operators tbody tr:hover td { background: var(--sunken); }
.operators tr.picked td { background: var(--sunken); }
.rules { margin: 0; padding-left: 30px; font-size: 14px; }
.rules li { padding: 2px 0; }
.operators td { padding-top: 5px; padding-bottom: 5px; }
.long { max-height: 620px; overflow: auto; }
.long thead th { position: sticky; top: 0; background: var(--page); z-index: 1; }
footer { margin: 48px 0 40px; color: var(--muted); font-size: 13px; }

@media (max-width: 700px) {
  .wrap { padding: 0 16px; }
  header { padding-top: 26px; }
  h1 { font-size: 24px; }
  .figures { grid-template-columns: 1fr 1fr; }
  .figure, .figure + .figure { padding: 10px 12px 8px 0; border-left: 0; }
  .figure .value { font-size: 22px; }
  .cards thead { display: none; }
  .cards, .cards tbody, .cards tr, .cards td { display: block; width: 100%; }
  .cards tbody tr { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 2px 12px; padding: 10px 0; border-bottom: 1px solid var(--line-strong); }
  .cards tr.found { box-shadow: inset 3px 0 var(--accent); padding-left: 12px; }
  .cards tr.found td:first-child { box-shadow: none; padding-left: 0; }
  .cards td, .cards td.n { text-align: left; border: 0; padding: 2px 0; }
  .cards td:first-child { grid-column: 1 / -1; font-weight: 600; padding-left: 0; }
  .cards td:not(:first-child)::before { content: attr(data-label); display: block; color: var(--muted); font-size: 12px; font-weight: 400; }
  .strategies.cards td.wide { display: none; }
  .memory { grid-template-columns: 1fr max-content; grid-auto-flow: dense; gap: 2px 16px; }
  .memory .lane { grid-column: 1 / -1; grid-row: auto; margin-bottom: 10px; }
  .memory .name { grid-column: 1; } .memory .n { grid-column: 2; }
}
@media print {
  nav, .tools, .chosen, #map, .skip { display: none !important; }
  body { background: #fff; font-size: 11pt; }
  section { break-inside: avoid; padding-top: 20px; }
  #operators { break-inside: auto; }
  .long, #timeline { max-height: none; overflow: visible; }
  .wrap { max-width: none; padding: 0; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
)css";

} // namespace parsearch::io::page
