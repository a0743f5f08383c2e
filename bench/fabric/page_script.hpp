#pragma once
// What the page of the comparison of networks shows, and the script that fills it.

#include <string_view>

namespace bench {

inline constexpr std::string_view fabric_style = R"css(
.tools { display: flex; flex-wrap: wrap; gap: 8px 20px; position: sticky; top: 0; background: var(--page); padding: 10px 0; border-bottom: 1px solid var(--line); z-index: 1; }
label { color: var(--muted); font-size: 14px; } select { font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--strong); border-radius: 4px; padding: 2px 6px; }
.drawings { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 16px 24px; } figure { margin: 0; } figcaption { color: var(--muted); font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--muted); } .legend i { display: inline-block; width: 14px; height: 10px; margin-right: 6px; }
.server { fill: var(--text); } .switch { fill: var(--page); stroke: var(--text); stroke-width: 1.2; } .line { fill: none; stroke: var(--c0); stroke-width: 2; }
:root { --cold: #d5dae0; --hot: #c0271a; } @media (prefers-color-scheme: dark) { :root { --cold: #333a42; --hot: #ff6f5c; } }
)css";

inline constexpr std::string_view fabric_body = R"html(<body>
<main>
<h1>Networks compared</h1>
<p id="about"></p>
<noscript><p>This page draws itself with JavaScript, which is switched off.</p></noscript>
<div class="tools"><label>Model <select id="model"></select></label><label>Servers <select id="servers"></select></label>
<label>Interfaces <select id="degree"></select></label><label>Gb/s each <select id="gbps"></select></label></div>
<h2>Time of an iteration</h2>
<p>By rate of an interface; lower is better. Every network has a strategy searched for it.</p>
<div class="legend" id="legend"></div>
<div id="bars"></div>
<h2>Networks</h2>
<p>Servers are dots, switches circles. Colour and width of a link: the share of the iteration for which its busier direction is in use.</p>
<div class="drawings" id="drawings"></div>
<div class="scroll"><table id="rows"></table></div>
<h2>Rounds</h2>
<p>Of fabric and strategy in turn: what was found in each round on its network. The first one is wired for data parallelism, or an ideal switch, which is not kept.</p>
<div id="rounds"></div>
<h2>Beside the paper</h2>
<p id="paper-p"></p>
<div class="scroll"><table id="paper"></table></div>
<section id="floors-s"><h2>How fast fabrics are found</h2><div class="scroll"><table id="floors"></table></div></section>
</main>
)html";

inline constexpr std::string_view fabric_script = R"js(
const data = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);
function el(name, attributes, ...children) {
  const e = name.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}
const distinct = key => [...new Set(data.rows.map(r => r[key]))];
const wirings = distinct('wiring'), keys = ['model', 'servers', 'degree', 'gbps'];
const colour = w => `var(--c${wirings.indexOf(w) % 8})`;
const shown = t => t === null ? 'none fits' : t >= 100 ? t.toFixed(1) : t.toFixed(2);
const chosen = () => Object.fromEntries(keys.map(k => [k, k === 'model' ? byId(k).value : +byId(k).value]));
const rowsOf = (c, ...by) => data.rows.filter(r => by.every(k => r[k] === c[k]));

function table(id, heads, rows) {
  const cell = (tag, text, i) => el(tag, i ? { class: 'n' } : {}, String(text));
  byId(id).replaceChildren(el('thead', {}, el('tr', {}, ...heads.map((h, i) => cell('th', h, i)))),
    el('tbody', {}, ...rows.map(r => el('tr', {}, ...r.map((v, i) => cell('td', v, i))))));
}

function bars(c) {
  const rows = rowsOf(c, 'model', 'servers', 'degree'), rates = [...new Set(rows.map(r => r.gbps))].sort((a, b) => a - b);
  const times = rows.map(r => r.iteration_ms).filter(t => t !== null);
  const w = 1160, h = 320, left = 64, top = 18, bottom = 280, high = Math.max(...times), low = Math.min(...times) * 0.8;
  // Times at the lowest and the highest rate are an order of magnitude apart.
  const y = t => bottom - (bottom - top) * Math.log(t / low) / Math.log(high / low);
  const svg = el('svg:svg', { viewBox: `0 0 ${w} ${h}`, role: 'img', 'aria-label': `Time of an iteration of ${c.model} by rate and network` });
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) for (const m of [1, 2, 5]) {
    const t = m * 10 ** e;
    if (t < low || t > high) continue;
    svg.append(el('svg:path', { class: 'grid', d: `M${left} ${y(t).toFixed(1)}H${w}` }), el('svg:text', { x: left - 6, y: (y(t) + 4).toFixed(1), 'text-anchor': 'end' }, `${+t.toPrecision(1)} ms`));
  }
  const group = (w - left) / rates.length, bar = group * 0.84 / wirings.length;
  rates.forEach((rate, g) => {
    const x0 = left + g * group + group * 0.08;
    svg.append(el('svg:text', { x: (x0 + group * 0.42).toFixed(1), y: bottom + 18, 'text-anchor': 'middle' }, `${rate} Gb/s`));
    wirings.forEach((wiring, i) => {
      const r = rows.find(q => q.gbps === rate && q.wiring === wiring);
      if (!r || r.iteration_ms === null) return;
      const x = x0 + i * bar, at = y(r.iteration_ms);
      svg.append(el('svg:rect', { x: x.toFixed(1), y: at.toFixed(1), width: (bar - 2).toFixed(1), height: (bottom - at).toFixed(1), fill: colour(wiring), opacity: rate === c.gbps ? 1 : 0.55 },
        el('svg:title', {}, `${wiring}, ${rate} Gb/s: ${shown(r.iteration_ms)} ms`)));
      if (bar > 30) svg.append(el('svg:text', { x: (x + bar / 2 - 1).toFixed(1), y: (at - 4).toFixed(1), 'text-anchor': 'middle', style: 'font-size:10px' }, r.iteration_ms >= 100 ? r.iteration_ms.toFixed(0) : r.iteration_ms.toFixed(1)));
    });
  });
  svg.append(el('svg:path', { class: 'axis', d: `M${left} ${bottom}H${w}` }));
  byId('bars').replaceChildren(svg);
  byId('legend').replaceChildren(...wirings.map(v => el('span', {}, el('i', { style: `background:${colour(v)}` }), v)));
}

// Servers alone stand on a circle; with switches, each vertex is in the layer of its distance from the servers.
function places(servers, drawing) {
  const n = servers + drawing.switches;
  if (!drawing.switches) return Array.from({ length: n }, (_, v) => [150 + 135 * Math.sin(2 * Math.PI * v / n), 150 - 135 * Math.cos(2 * Math.PI * v / n)]);
  const near = Array.from({ length: n }, () => []), layer = Array.from({ length: n }, (_, v) => v < servers ? 0 : -1);
  for (const [a, b] of drawing.links) { near[a].push(b); near[b].push(a); }
  const queue = layer.flatMap((l, v) => l === 0 ? [v] : []);
  for (const v of queue) for (const u of near[v]) if (layer[u] < 0) { layer[u] = layer[v] + 1; queue.push(u); }
  const most = Math.max(...layer), count = Array(most + 1).fill(0), taken = Array(most + 1).fill(0);
  for (const l of layer) ++count[l];
  return layer.map(l => [15 + 270 * (taken[l]++ + 0.5) / count[l], 280 - 260 * l / most]);
}
function drawing(r) {
  const caption = el('figcaption', {}, `${r.network}: ${r.links} links of ${+r.link_gbps.toPrecision(4)} Gb/s`);
  if (r.drawing === null) return el('figure', {}, caption, el('p', {}, 'Too many links to draw.'));
  const at = places(r.servers, r.drawing), svg = el('svg:svg', { viewBox: '0 0 300 300', role: 'img', 'aria-label': `${r.wiring} of ${r.servers} servers` }), seen = new Map();
  for (const [a, b, forward, back] of r.drawing.links) {
    const busy = Math.max(forward, back) / 10, key = `${Math.min(a, b)} ${Math.max(a, b)}`, copies = seen.get(key) || 0;
    seen.set(key, copies + 1);
    const [x0, y0] = at[a], [x1, y1] = at[b], bend = 14 * Math.ceil(copies / 2) * (copies % 2 ? 1 : -1) * (a < b ? 1 : -1), long = Math.hypot(x1 - x0, y1 - y0) || 1;
    const middle = [(x0 + x1) / 2 - bend * (y1 - y0) / long, (y0 + y1) / 2 + bend * (x1 - x0) / long];
    svg.append(el('svg:path', { d: `M${x0.toFixed(1)} ${y0.toFixed(1)}Q${middle.map(v => v.toFixed(1)).join(' ')} ${x1.toFixed(1)} ${y1.toFixed(1)}`, fill: 'none',
      style: `stroke: color-mix(in oklab, var(--hot) ${busy.toFixed(1)}%, var(--cold))`, 'stroke-width': ((0.6 + busy / 40) * (r.servers > 40 ? 0.6 : 1)).toFixed(2) },
      el('svg:title', {}, `${a} - ${b}: busy ${(forward / 10).toFixed(1)} % there, ${(back / 10).toFixed(1)} % back`)));
  }
  at.forEach(([x, y], v) => svg.append(el('svg:circle', { class: v < r.servers ? 'server' : 'switch', cx: x.toFixed(1), cy: y.toFixed(1), r: r.servers > 40 ? 1.6 : 4 })));
  return el('figure', {}, el('strong', { style: `color:${colour(r.wiring)}` }, r.wiring), svg, caption);
}

function networks(c) {
  const rows = rowsOf(c, ...keys), found = rows.find(r => r.wiring === 'found');
  byId('drawings').replaceChildren(...rows.map(drawing));
  table('rows', ['network', 'ms', 'times the found one\'s', 'data parallel, ms', 'best expert, ms', 'expert', 'hops', 'most', 'bandwidth tax', 'price, $', 'priced', 'seconds'],
    rows.map(r => [r.wiring, shown(r.iteration_ms), found && found.iteration_ms && r.iteration_ms ? (r.iteration_ms / found.iteration_ms).toFixed(2) : '-',
      shown(r.data_parallel_ms) + (r.data_parallel_fits ? '' : ' (does not fit)'), shown(r.expert_ms), r.expert, r.mean_hops.toFixed(2), r.max_hops, r.bandwidth_tax.toFixed(2),
      r.price === null ? '-' : Math.round(r.price).toLocaleString('en'), r.evaluations, r.seconds.toFixed(2)]));
}

function rounds(c) {
  const row = rowsOf(c, ...keys).find(r => r.rounds), all = row ? row.rounds : [], costs = all.map(q => q.iteration_ms).filter(t => t !== null);
  if (costs.length < 2) { byId('rounds').replaceChildren(el('p', {}, 'One round alone.')); return; }
  const lines = [...new Set(all.map(q => q.chain))].map(c => all.filter(q => q.chain === c)), names = ['wired for data parallelism', 'from an ideal switch', 'from a random network', 'from a fat tree'];
  const w = 700, h = 240, left = 64, top = 16, bottom = 200, last = Math.max(...lines.map(l => l.length)) - 1, high = Math.max(...costs) * 1.02, low = Math.min(...costs) * 0.98;
  const x = i => left + 20 + (w - left - 60) * i / Math.max(last, 1), y = t => bottom - (bottom - top) * (t - low) / (high - low);
  const svg = el('svg:svg', { viewBox: `0 0 ${w} ${h}`, role: 'img', 'aria-label': 'Time of an iteration by round', style: 'max-width:800px' }, el('svg:path', { class: 'axis', d: `M${left} ${bottom}H${w}` }));
  for (let i = 0; i <= last; ++i) svg.append(el('svg:text', { x: x(i).toFixed(1), y: bottom + 18, 'text-anchor': 'middle' }, i + 1));
  for (const t of [Math.min(...costs), Math.max(...costs)]) svg.append(el('svg:path', { class: 'grid', d: `M${left} ${y(t).toFixed(1)}H${w}` }), el('svg:text', { x: left - 6, y: (y(t) + 4).toFixed(1), 'text-anchor': 'end' }, `${shown(t)} ms`));
  lines.forEach((line, n) => {
    const points = line.map((q, i) => [i, q]).filter(([, q]) => q.iteration_ms !== null);
    svg.append(el('svg:path', { class: 'line', style: `stroke:var(--c${n})`, d: points.map(([i, q], k) => `${k ? 'L' : 'M'}${x(i).toFixed(1)} ${y(q.iteration_ms).toFixed(1)}`).join('') }));
    for (const [i, q] of points) svg.append(el('svg:circle', { cx: x(i).toFixed(1), cy: y(q.iteration_ms).toFixed(1), r: q.iteration_ms === row.iteration_ms ? 5 : 3, fill: `var(--c${n})` },
      el('svg:title', {}, `${names[q.start]}, round ${i + 1}, ${q.network}, ${q.rings} rings: ${shown(q.before_ms)} before the search, ${shown(q.iteration_ms)} ms after ${q.evaluations} evaluations`)));
  });
  byId('rounds').replaceChildren(svg, el('div', { class: 'legend' }, ...lines.map((line, n) => el('span', {}, el('i', { style: `background:var(--c${n})` }), names[line[0].start]))));
}

function paper() {
  byId('paper-p').textContent = `TopoOpt (W. Wang et al., NSDI 2023) claims up to ${data.published_speedup} times the speed of a fat tree of similar cost, on 12 servers. Its times, for 16 servers of 4 GPUs at 100 Gb/s, are of a packet-level simulation of its own strategies from measured kernels; batches of NCF and ResNet are ours, the others those of its measurements.`;
  const at = r => data.rows.find(q => q.model === r.model && q.servers === 16 && q.degree === r.degree && q.gbps === 100 && q.wiring === r.wiring);
  table('paper', ['model', 'interfaces', 'batch', 'TopoOpt, ms', 'found here, ms', 'ideal fat tree here, ms', 'over found', 'fat tree here, ms', 'over found'], data.published.flatMap(p => {
    const found = at({ ...p, wiring: 'found' }), trees = ['ideal fat tree', 'fat tree'].map(w => at({ ...p, wiring: w }));
    if (!found || trees.includes(undefined)) return [];
    return [[p.model, p.degree, found.batch, p.least_ms === p.most_ms ? p.least_ms : `${p.least_ms} - ${p.most_ms}`, shown(found.iteration_ms), ...trees.flatMap(t => [shown(t.iteration_ms), (t.iteration_ms / found.iteration_ms).toFixed(2)])]];
  }));
}

if (data.rows.length) byId('about').textContent = `${data.rows.length} searches of ${data.evaluations} evaluations (on found fabrics of all rounds together). Servers of four A100 on an NVSwitch, 300 GB/s, each GPU with a host link of 31.5 GB/s; simulated by roofline times. `
  + 'The ideal switch has one link of all interfaces\' bandwidth per server, the fat tree links of the rate for which it costs what the fabric does (the ideal one is a switch of that rate, where flows do not collide), the fully connected network links that sum up to the same bandwidth.';
for (const k of keys) byId(k).replaceChildren(...distinct(k).map(v => el('option', { value: v }, String(v))));
if (distinct('gbps').includes(100)) byId('gbps').value = 100;
function draw() {
  const c = chosen();
  bars(c);
  networks(c);
  rounds(c);
}
for (const k of keys) byId(k).addEventListener('change', draw);
if (data.rows.length) {
  draw();
  paper();
}
if (data.floors.length) table('floors', ['what', 'seconds', 'at most', 'seconds of all processors'], data.floors.map(f => [f.what, f.seconds.toFixed(3), f.at_most, f.processor_seconds.toFixed(3)]));
else byId('floors-s').hidden = true;
)js";

} // namespace bench
