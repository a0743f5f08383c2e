#pragma once
/// The skeleton of the report: what the scripts fill.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

/// The policy forbids every request, also one that a browser extension or a mistake would make.
inline constexpr char const* head = R"html(<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
)html";

inline constexpr char const* body = R"html(<body>
<a class="skip" href="#summary">Skip to the summary</a>
<nav aria-label="Sections"><div class="wrap"><div class="links">
<a href="#summary">Summary</a><a href="#strategies">Strategies</a><a href="#time">Timeline</a><a href="#memory">Memory</a><a href="#network">Network</a>
<a href="#search">Search</a><a href="#rewriting">Rewriting</a><a href="#drawing">Graph</a><a href="#operators">Operators</a><a href="#parameters">Parameters</a>
</div><button id="theme" type="button" aria-label="Switch between light and dark">Dark</button></div></nav>
<main class="wrap">
<noscript><p class="warn">This report draws itself with JavaScript, which is switched off.</p></noscript>
<header id="summary"></header>
<section id="strategies" aria-labelledby="strategies-h">
<h2 id="strategies-h">Strategies</h2><p id="strategies-p"></p>
<div id="strategies-t" class="scroll"></div>
<h3>Bytes moved between devices in one iteration</h3><div id="moved-t" class="scroll"></div>
</section>
<section id="time" aria-labelledby="time-h">
<h2 id="time-h">Timeline</h2><p id="time-p"></p>
<div id="path"></div>
<div class="tools">
<label>Colour by <select id="colour"><option value="task">task</option><option value="type">operator type</option><option value="operator">operator</option><option value="batch">micro-batch</option></select></label>
<label>Links <select id="links"></select></label>
<label><input type="checkbox" id="critical" checked> critical path</label>
<label><input type="checkbox" id="every"> every device</label>
<span class="space"></span><span id="range" class="quiet"></span>
<span class="group" role="group" aria-label="Zoom"><button id="out" type="button" aria-label="Zoom out">−</button><button id="in" type="button" aria-label="Zoom in">+</button><button id="all" type="button">All</button></span>
</div>
<div class="panel"><canvas id="overview" aria-hidden="true"></canvas>
<div id="timeline" tabindex="0" role="application" aria-label="Timeline of one iteration. Arrow keys move, plus and minus zoom, 0 shows all."><canvas></canvas></div></div>
<div class="chosen" id="chosen" aria-live="polite"></div>
<div class="legend" id="legend"></div>
</section>
<section id="memory" aria-labelledby="memory-h"><h2 id="memory-h">Memory</h2><p id="memory-p"></p><div id="memory-l" class="legend"></div><div id="memory-c"></div>
<div id="memory-over" hidden><h3>Over an iteration</h3><div class="tools"><label>Device <select id="memory-d"></select></label></div><div class="panel" id="memory-o"></div></div></section>
<section id="network" aria-labelledby="network-h" hidden><h2 id="network-h">Network</h2><p id="network-p"></p><div id="network-f" class="figures"></div>
<div class="tools"><span class="group" role="group" aria-label="Colour of links"><button id="net-busy" type="button" aria-pressed="true">Utilisation</button><button id="net-bytes" type="button" aria-pressed="false">Bytes</button></span></div>
<div class="panel" id="net"></div><div class="legend" id="network-l" style="margin-top:10px"></div>
<h3 id="net-h"></h3><div id="network-t" class="scroll"></div>
<div id="rounds" hidden><h3>Searches on wirings</h3><div id="rounds-t" class="scroll"></div></div></section>
<section id="search" aria-labelledby="search-h"><h2 id="search-h">Search</h2><p id="search-p"></p>
<div class="tools" id="search-tools"><span class="group" role="group" aria-label="Horizontal axis"><button id="by-time" type="button" aria-pressed="true">Seconds</button><button id="by-count" type="button" aria-pressed="false">Evaluations</button></span>
<label><input type="checkbox" id="log"> logarithmic</label></div>
<div id="curve"></div></section>
<section id="rewriting" aria-labelledby="rewriting-h" hidden><h2 id="rewriting-h">Rewriting</h2><p id="rewriting-p"></p>
<div id="rewriting-t" class="scroll"></div><h3>Rules, in the order in which they were applied</h3><div id="rewriting-l" class="long"></div></section>
<section id="drawing" aria-labelledby="drawing-h"><h2 id="drawing-h">Graph</h2><p id="drawing-p"></p>
<div class="tools"><span class="group" id="which" role="group" aria-label="Which graph" hidden><button id="g-after" type="button" aria-pressed="true">Rewritten</button><button id="g-before" type="button" aria-pressed="false">Model</button></span>
<label id="unroll-l"><input type="checkbox" id="unroll"> show every operator</label><span class="space"></span>
<span class="group" role="group" aria-label="Zoom of the graph"><button id="g-out" type="button" aria-label="Zoom out">−</button><button id="g-in" type="button" aria-label="Zoom in">+</button><button id="g-all" type="button">Fit</button></span></div>
<div class="panel" id="graph" tabindex="0" role="application" aria-label="Operator graph. Arrow keys move, plus and minus zoom, 0 fits it to the window."></div>
<div class="legend" id="graph-l" style="margin-top:10px"></div></section>
<section id="operators" aria-labelledby="operators-h"><h2 id="operators-h">Operators</h2><p id="operators-p"></p>
<div class="tools"><input type="search" id="filter" placeholder="Find by name, type or configuration" aria-label="Find operators"><span id="filter-n" class="quiet" aria-live="polite"></span></div>
<div class="long scroll" id="operators-t" tabindex="0" role="region" aria-label="Operators and their configurations"></div></section>
<section id="parameters" aria-labelledby="parameters-h"><h2 id="parameters-h">Parameters</h2><p id="parameters-p"></p>
<div class="long scroll" id="parameters-t" tabindex="0" role="region" aria-label="Parameters and their shapes"></div></section>
<footer id="footer"></footer>
</main>
<div class="tip" id="tip" hidden></div>
)html";

} // namespace parsearch::io::page
