#pragma once
/// The style of the pages that benchmarks write: light and dark, eight colours, tables, drawings.

#include <string_view>

namespace bench {

inline constexpr std::string_view page_style = R"css(
:root { color-scheme: light dark; --page: #fafaf9; --line: #e2e5e9; --strong: #c6ccd3; --text: #1c2127; --muted: #59636e;
  --c0: #1f66b1; --c1: #b3541e; --c2: #1d7a4c; --c3: #7b4fb5; --c4: #a8325e; --c5: #0f7c86; --c6: #8a6d00; --c7: #59636e; }
@media (prefers-color-scheme: dark) { :root { --page: #131619; --line: #2c3238; --strong: #464e57; --text: #e4e8ec; --muted: #9ba6b1;
  --c0: #78b0ee; --c1: #eb9a66; --c2: #6cc79a; --c3: #b79cec; --c4: #ec86aa; --c5: #5cc3cd; --c6: #d8b84a; --c7: #9ba6b1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
main { max-width: 1240px; margin: 0 auto; padding: 24px; }
h1 { font-size: 28px; line-height: 1.2; margin: 16px 0 6px; } h2 { font-size: 19px; margin: 44px 0 4px; }
p { color: var(--muted); max-width: 96ch; margin: 4px 0 16px; }
.scroll { overflow-x: auto; overflow-wrap: normal; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 500; font-size: 13px; color: var(--muted); padding: 6px 16px 6px 0; border-bottom: 1px solid var(--strong); vertical-align: bottom; }
td, tbody th { padding: 6px 16px 6px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody th { color: var(--text); font-size: 14px; font-weight: 400; }
.n { text-align: right; }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 12px 24px; margin: 8px 0 16px; }
svg { display: block; width: 100%; height: auto; } svg.key { display: inline-block; width: 26px; height: 10px; margin-right: 8px; }
svg text { fill: var(--muted); font-size: 12px; } .grid { stroke: var(--line); } .axis { stroke: var(--strong); }
)css";

} // namespace bench
