#pragma once
/// The script of the report's network.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* network_script = R"js(
if (data.network && data.network.links.length) {
  const net = data.network, box = byId('net'), vertices = net.servers + net.switches, limit = 10;
  byId('network').hidden = false;
  const vertexName = v => v < net.servers ? `server ${v}` : `switch ${v - net.servers}`;
  const linkRate = bytes => +(bytes * 8 / 1e9).toPrecision(4) + NBSP + 'Gb/s';
  // Direction 2l of link l leads from a to b, 2l + 1 back.
  const ways = net.links.flatMap(([a, b, bytesPerSecond], l) => [[a, b, 2 * l], [b, a, 2 * l + 1]].map(([from, to, i]) =>
    ({ from, to, rate: bytesPerSecond, latency: net.links[l][3], messages: net.messages[i], collectives: net.collectives[i], bytes: net.messages[i] + net.collectives[i], busy: net.utilisation[i] })));
  const measures = { busy: x => share(x, 1), bytes: traffic }, top = { busy: most(ways.map(w => w.busy)), bytes: most(ways.map(w => w.bytes)) };
  let by = 'busy', drawn = [], at = [], marked = null;

  { // What the network is, and what it does.
    const figure = (value, small, label) => el('div', { class: 'figure' }, el('div', { class: 'value' }, value, small ? el('small', {}, small) : null), el('div', { class: 'label' }, label));
    const [hops, longest] = net.pairHops, busiest = ways.reduce((a, b) => b.busy > a.busy ? b : a);
    const figures = [figure(number(hops, 3), 'hops', `between two servers, ${longest} at most`), figure(times(net.tax), '', 'bandwidth tax: bytes on all links per byte sent'),
      figure(traffic(net.demanded), '', 'leaves servers for others'), figure(share(busiest.busy, 1), '', `of the time is ${vertexName(busiest.from)} → ${vertexName(busiest.to)} busy, the busiest link`)];
    if (net.price !== null) figures.push(figure('$' + count(net.price), '', 'interfaces, transceivers, ports and cables'));
    byId('network-f').append(...figures);
    byId('network-p').textContent = `${net.name[0].toUpperCase() + net.name.slice(1)}: ${plural(net.servers, 'server')}${net.switches ? ' and ' + plural(net.switches, 'switch', 'switches') : ''}, `
      + `${plural(net.links.length, 'link')}. Each direction of a link is a line of its own, which keeps to the right.`;
  }

  if (net.rounds.length) {
    byId('rounds').hidden = false;
    byId('rounds-t').append(table('strategies cards', [['Network', '', r => r[0]], ['Round', 'n', r => count(r[1])], ['Cost before', 'n', r => time(r[2])], ['Cost found', 'n', r => time(r[3])],
      ['Evaluations', 'n', r => count(r[4])]], net.rounds, r => r[5] ? 'found' : ''));
  }

  /** Where vertices are: servers alone on a circle, else in layers by their distance from servers. */
  function place(w) {
    if (!net.switches) {
      const side = Math.min(w, 680), r = side / 2 - 34;
      at = Array.from({ length: vertices }, (_, v) => { const t = 2 * Math.PI * v / vertices; return [w / 2 + r * Math.sin(t), side / 2 - r * Math.cos(t)]; });
      return side;
    }
    const layer = Array.from({ length: vertices }, (_, v) => v < net.servers ? 0 : -1), near = Array.from({ length: vertices }, () => []);
    for (const [a, b] of net.links) { near[a].push(b); near[b].push(a); }
    const queue = layer.map((_, v) => v).slice(0, net.servers);
    for (let i = 0; i < queue.length; ++i) for (const v of near[queue[i]]) if (layer[v] < 0) { layer[v] = layer[queue[i]] + 1; queue.push(v); }
    const layers = most(layer) + 1, members = Array.from({ length: layers }, () => []), h = 60 + (layers - 1) * 130;
    layer.forEach((l, v) => members[l].push(v));
    at = [];
    members.forEach((list, l) => list.forEach((v, i) => { at[v] = [(i + 0.5) / list.length * w, h - 34 - l * 130]; }));
    return h;
  }
  /** The curve of each direction: from, to, and what it is bent towards, to its right. */
  function bend() {
    const parallel = new Map();
    return ways.map(w => {
      const key = w.from * vertices + w.to, n = parallel.get(key) || 0, [ax, ay] = at[w.from], [bx, by] = at[w.to], long = Math.hypot(bx - ax, by - ay) || 1;
      parallel.set(key, n + 1);
      const off = Math.min(8, 2 + 0.04 * long) * (1 + 2 * n) + (net.switches && ay === by ? 0.25 * long : 0);
      return { way: w, a: [ax, ay], b: [bx, by], c: [(ax + bx) / 2 - (by - ay) / long * off, (ay + by) / 2 + (bx - ax) / long * off] };
    });
  }
  const path = d => `M${d.a.map(x => x.toFixed(1))}Q${d.c.map(x => x.toFixed(1))} ${d.b.map(x => x.toFixed(1))}`;
  function heat(t) {
    const stops = ['--n0', '--n1', '--n2'].map(n => [1, 3, 5].map(i => parseInt(cssColour(n).slice(i, i + 2), 16))), k = t < 0.5 ? 0 : 1, f = 2 * t - k;
    return `rgb(${stops[k].map((x, i) => Math.round(x + (stops[k + 1][i] - x) * f)).join(' ')})`;
  }
  function draw() {
    const w = Math.max(300, box.clientWidth), h = place(w), many = ways.length > 300, size = Math.max(1.5, Math.min(net.switches ? 8 : 9, 0.3 * w * (net.switches ? 1 : 1.6) / net.servers));
    const labelled = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512, 1000].find(s => s >= 26 * net.servers / (net.switches ? w : 1.5 * w)) || net.servers;
    drawn = bend();
    const svg = el('svg:svg', { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: 'img', 'aria-label': `${byId('network-p').textContent} ${byId('network-f').textContent}` });
    // What carries most is drawn last, and lies above.
    for (const d of [...drawn].sort((x, y) => x.way[by] - y.way[by])) {
      const t = top[by] > 0 ? d.way[by] / top[by] : 0;
      svg.append(el('svg:path', { class: 'way', d: path(d), stroke: heat(t), 'stroke-width': ((many ? 0.5 : 0.9) + (many ? 1.5 : 2.2) * t).toFixed(2) }));
    }
    marked = el('svg:g', {});
    svg.append(marked);
    at.forEach(([x, y], v) => {
      svg.append(v < net.servers ? el('svg:circle', { class: 'vertex', cx: x.toFixed(1), cy: y.toFixed(1), r: size.toFixed(1) })
        : el('svg:rect', { class: 'vertex', x: (x - size - 2).toFixed(1), y: (y - size).toFixed(1), width: (2 * size + 4).toFixed(1), height: (2 * size).toFixed(1), rx: 2 }));
      if (v >= net.servers || v % labelled) return;
      const out = net.switches ? [x, y + size + 13] : [w / 2 + (x - w / 2) * (1 + 18 / (h / 2 - 34)), h / 2 + (y - h / 2) * (1 + 18 / (h / 2 - 34)) + 4];
      svg.append(el('svg:text', { x: out[0].toFixed(1), y: out[1].toFixed(1), 'text-anchor': 'middle' }, String(v)));
    });
    box.replaceChildren(svg);
    byId('network-l').replaceChildren(el('span', {}, '0', el('i', { class: 'ramp', style: `background:linear-gradient(90deg, ${heat(0)}, ${heat(0.5)}, ${heat(1)})` }), measures[by](top[by])),
      el('span', {}, by === 'busy' ? 'share of the iteration in which a direction of a link carries data' : 'bytes that a direction of a link carries in an iteration'));
    const first = [...ways].sort((x, y) => y[by] - x[by] || y.bytes - x.bytes).slice(0, limit);
    byId('net-h').textContent = by === 'busy' ? 'Busiest links' : 'Links with most bytes';
    byId('network-t').replaceChildren(table('cards', [['Link', '', x => `${vertexName(x.from)} → ${vertexName(x.to)}`], ['Rate', 'n', x => linkRate(x.rate)], ['Messages', 'n', x => traffic(x.messages)],
      ['Collectives', 'n', x => traffic(x.collectives)], ['Busy', 'n', x => share(x.busy, 1)]], first, () => ''));
  }
  /** The distance of a point from a curve, by points along it. */
  function distance(d, x, y) {
    let least = Infinity;
    for (let i = 0; i <= 16; ++i) {
      const t = i / 16, u = 1 - t, px = u * u * d.a[0] + 2 * u * t * d.c[0] + t * t * d.b[0], py = u * u * d.a[1] + 2 * u * t * d.c[1] + t * t * d.b[1];
      if (i > 0) { // the piece from the last point to this
        const [lx, ly] = d.last, vx = px - lx, vy = py - ly, k = Math.max(0, Math.min(1, ((x - lx) * vx + (y - ly) * vy) / (vx * vx + vy * vy || 1)));
        least = Math.min(least, Math.hypot(lx + k * vx - x, ly + k * vy - y));
      }
      d.last = [px, py];
    }
    return least;
  }
  function point(e) {
    const r = box.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    const v = at.findIndex(p => Math.hypot(p[0] - x, p[1] - y) < 9);
    const close = v >= 0 ? null : drawn.map(d => [distance(d, x, y), d]).reduce((a, b) => b[0] < a[0] ? b : a);
    const shown = v >= 0 ? drawn.filter(d => d.way.from === v || d.way.to === v) : close[0] < 10 ? [close[1]] : [];
    marked.replaceChildren(...shown.map(d => el('svg:path', { class: 'marked', d: path(d) })));
    if (!shown.length) { hideTip(); return; }
    if (v >= 0) {
      const sum = (list, what) => list.reduce((a, d) => a + d.way[what], 0), out = shown.filter(d => d.way.from === v), into = shown.filter(d => d.way.to === v);
      showTip(e.clientX, e.clientY, vertexName(v), [['links', count(out.length)], ['sends and passes on', traffic(sum(out, 'bytes'))], ['receives', traffic(sum(into, 'bytes'))],
        ['busiest link', share(most(shown.map(d => d.way.busy)), 1)]]);
    } else {
      const w = close[1].way;
      showTip(e.clientX, e.clientY, `${vertexName(w.from)} → ${vertexName(w.to)}`, [['rate', linkRate(w.rate)], ['latency', time(w.latency)], ['messages', traffic(w.messages)],
        ['collectives', traffic(w.collectives)], ['together', traffic(w.bytes)], ['busy', share(w.busy, 1)]]);
    }
  }
  box.addEventListener('pointermove', point);
  box.addEventListener('pointerdown', point);
  box.addEventListener('pointerleave', () => { marked.replaceChildren(); hideTip(); });
  const choose = what => { by = what; byId('net-busy').setAttribute('aria-pressed', by === 'busy'); byId('net-bytes').setAttribute('aria-pressed', by === 'bytes'); draw(); };
  byId('net-busy').addEventListener('click', () => choose('busy'));
  byId('net-bytes').addEventListener('click', () => choose('bytes'));
  on('theme', draw);
  on('resize', draw);
  draw();
}
)js";

} // namespace parsearch::io::page
