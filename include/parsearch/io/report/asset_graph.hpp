#pragma once
/// The script of the report's operator graph.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* graph_script = R"js(
{
  const box = byId('graph'), W = 184, H = 46, ROW = 72, COLUMN = 206;
  let boxes = [], drawing = null, scene = null, scale = 1, dx = 0, dy = 0, map = null;
  // The graph of the plan, and the model's where rules have changed it: operators, classes of configurations, drawings. A configuration has one
  // colour in both, an operator that both have is picked in both.
  const after = { operators: data.operators, classes: data.classes, drawings: data.drawings }, before = data.rewriting;
  let from = after;
  const colours = new Map(data.classes.map(([text], i) => [text, i]));
  for (const [text] of before ? before.classes : []) if (!colours.has(text)) colours.set(text, colours.size);
  const colourOf = c => c < 0 ? c : colours.get(from.classes[c][0]);
  const named = new Map(data.operators.map((o, i) => [o.name, i]));
  const inPlan = op => from === after ? op : named.has(from.operators[op].name) ? named.get(from.operators[op].name) : -1;
  function describe() {
    const [collapsed, whole] = from.drawings;
    byId('unroll-l').hidden = !whole;
    byId('drawing-p').textContent = (from === after ? '' : 'The operators of the model, with the best strategy that was found for them. ') + 'Operators of one colour are split and placed alike.'
      + (whole ? ` ${count(whole.boxes.length)} operators and inputs are drawn in ${plural(collapsed.boxes.length, 'box', 'boxes')}: repeated blocks once, and with each operator what merely passes its result on.` : '')
      + ' Click one to find it in the timeline and the list' + (from === after ? '.' : ', where the plan has it, too.');
  }
  const limit = 14;
  function legend() {
    byId('graph-l').replaceChildren(...from.classes.slice(0, limit).map(([text, n], i) => el('span', { class: 'mono' }, el('i', { style: `background:${fillOf(colourOf(i))};border:1px solid var(--line-strong)` }), `${text} × ${n}`)),
      ...(from.classes.length > limit ? [el('span', {}, `and ${count(from.classes.length - limit)} more`)] : []));
  }
  // Names differ at their ends, so that is what stays of a long one.
  const fitEnd = (text, room) => text.length * 6.3 <= room ? text : '…' + text.slice(-Math.max(1, Math.floor(room / 6.3) - 1));
  const fit = (text, room) => text.length * 6.3 <= room ? text : text.slice(0, Math.max(1, Math.floor(room / 6.3) - 1)) + '…';

  function build() {
    boxes = [];
    const d = drawing, cx = i => d.x[i] * COLUMN, top = i => d.layer[i] * ROW;
    scene = el('svg:g', {});
    for (const [first, length, copies] of d.frames) {
      const members = Array.from({ length }, (_, k) => first + k);
      const x0 = Math.min(...members.map(cx)) - W / 2 - 14, x1 = Math.max(...members.map(cx)) + W / 2 + 14;
      const y0 = Math.min(...members.map(top)) - 12, y1 = Math.max(...members.map(top)) + H + 12;
      // Members that others stand among are marked one by one.
      const alone = d.boxes.every((_, i) => (i >= first && i < first + length) || cx(i) + W / 2 < x0 || cx(i) - W / 2 > x1 || top(i) + H < y0 || top(i) > y1);
      if (alone) scene.append(el('svg:rect', { class: 'frame', x: x0, y: y0, width: x1 - x0, height: y1 - y0, rx: 8 }), el('svg:text', { class: 'times', x: x1 - 5, y: y0 + 11, 'text-anchor': 'end' }, `× ${copies}`));
      else for (const i of members) scene.append(el('svg:text', { class: 'times', x: cx(i) + W / 2 - 2, y: top(i) - 5, 'text-anchor': 'end' }, `× ${copies}`));
    }
    const edges = el('svg:g', {});
    for (const [from, to, bends] of d.edges) {
      const points = [[cx(from), top(from) + H], ...bends.map((b, k) => [b * COLUMN, (d.layer[from] + 1 + k) * ROW + H / 2]), [cx(to), top(to)]];
      let path = `M${points[0]}`;
      for (let k = 1; k < points.length; ++k) {
        const [ax, ay] = points[k - 1], [bx, by] = points[k], my = (ay + by) / 2;
        path += ax === bx ? `V${by}` : `C${ax} ${my} ${bx} ${my} ${bx} ${by}`;
      }
      edges.append(el('svg:path', { class: 'edge', d: path, 'data-from': from, 'data-to': to }));
    }
    scene.append(edges);
    d.boxes.forEach((members, i) => {
      const op = members[0], o = from.operators[op], text = o.class < 0 ? o.shape : from.classes[o.class][0];
      const kinds = members.slice(0, 3).map(m => from.operators[m].kind).join(' + ') + (members.length > 3 ? ` + ${members.length - 3}` : '');
      const node = el('svg:g', { class: 'node', transform: `translate(${cx(i) - W / 2} ${top(i)})`, 'data-op': op },
        el('svg:rect', { width: W, height: H, rx: o.class < 0 ? H / 2 : 6 }),
        el('svg:text', { x: W / 2, y: 19, 'text-anchor': 'middle' }, fitEnd(o.name, W - 16)),
        el('svg:text', { class: 'sub', x: W / 2, y: 35, 'text-anchor': 'middle' }, fit(o.class < 0 ? text : kinds, (W - 16) * 1.12)),
        el('svg:title', {}, [...members.map(m => `${from.operators[m].name} (${from.operators[m].kind}) → ${from.operators[m].shape}`), o.class < 0 ? 'input' : text].join('\n')));
      boxes.push({ node, members });
      scene.append(node);
    });
    box.replaceChildren(el('svg:svg', { role: 'img', 'aria-label': `Graph of ${plural(d.boxes.length, 'box', 'boxes')}` }, scene));
    map = el('canvas', { id: 'map', 'aria-hidden': 'true' });
    box.append(map);
    for (const type of ['pointerdown', 'pointermove']) map.addEventListener(type, e => {
      e.stopPropagation();
      if (!e.buttons) return;
      const r = map.getBoundingClientRect(), size = extent();
      dx = box.clientWidth / 2 - (e.clientX - r.left) / r.width * size.w * scale;
      dy = box.clientHeight / 2 - (e.clientY - r.top) / r.height * size.h * scale;
      place();
    });
    recolour();
  }
  const extent = () => ({ w: drawing.width * COLUMN + 40, h: (drawing.layers - 1) * ROW + H + 24 });
  function recolour() {
    for (const { node, members } of boxes) node.querySelector('rect').style.fill = fillOf(colourOf(from.operators[members[0]].class));
    legend();
    mark();
  }
  function mark() {
    const at = picked < 0 ? -1 : boxes.findIndex(({ members }) => members.some(op => inPlan(op) === picked));
    boxes.forEach(({ node }, i) => node.classList.toggle('picked', i === at));
    for (const edge of scene.querySelectorAll('.edge')) edge.classList.toggle('picked', at >= 0 && (+edge.dataset.from === at || +edge.dataset.to === at));
  }
  function place() {
    scene.setAttribute('transform', `translate(${dx} ${dy}) scale(${scale})`);
    scene.classList.toggle('far', scale < 0.34);
    drawMap();
  }
  /* The whole graph beside it, where it does not fit into the window. */
  function drawMap() {
    const size = extent(), w = box.clientWidth, h = box.clientHeight;
    const k = Math.min((h - 20) / size.h, Math.min(150, w * 0.22) / size.w), ratio = devicePixelRatio || 1;
    map.hidden = size.w * scale <= w && size.h * scale <= h;
    map.style.display = map.hidden ? 'none' : 'block';
    if (map.hidden) return;
    const mw = Math.max(24, size.w * k), mh = size.h * k, sx = mw / size.w, ctx = map.getContext('2d');
    map.style.width = mw + 'px';
    map.style.height = mh + 'px';
    map.style.bottom = 'auto';
    map.width = Math.round(mw * ratio);
    map.height = Math.round(mh * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawing.boxes.forEach((members, i) => {
      const c = colourOf(from.operators[members[0]].class);
      ctx.fillStyle = c < 0 ? cssColour('--line-strong') : strongOf(c);
      ctx.fillRect((drawing.x[i] * COLUMN - W / 2) * sx, drawing.layer[i] * ROW * k, Math.max(2, W * sx), Math.max(1, H * k));
    });
    ctx.strokeStyle = cssColour('--text');
    ctx.lineWidth = 1.5;
    ctx.strokeRect(Math.max(0.75, -dx / scale * sx), Math.max(0.75, -dy / scale * k), Math.min(mw - 1.5, w / scale * sx), Math.min(mh - 1.5, h / scale * k));
  }
  function zoom(factor, x = box.clientWidth / 2, y = box.clientHeight / 2) {
    const next = Math.min(2.5, Math.max(0.02, scale * factor));
    dx = x - (x - dx) * next / scale;
    dy = y - (y - dy) * next / scale;
    scale = next;
    place();
  }
  const move = (x, y) => { dx += x; dy += y; place(); };
  function all() {
    const size = extent();
    scale = Math.min(1, box.clientWidth / size.w, box.clientHeight / size.h);
    dx = (box.clientWidth - (size.w - 40) * scale) / 2;
    dy = (box.clientHeight - (size.h - 24) * scale) / 2;
    place();
  }
  /** From the top, as large as reads well. */
  function begin() {
    const size = extent(), w = box.clientWidth;
    scale = Math.min(1, Math.max(0.8, Math.min(w / size.w, box.clientHeight / size.h)));
    const firsts = drawing.boxes.map((_, i) => i).filter(i => drawing.layer[i] <= 2).map(i => drawing.x[i] * COLUMN).sort((a, b) => a - b);
    const middle = size.w * scale <= w ? (size.w - 40) / 2 : firsts[firsts.length >> 1];
    dx = w / 2 - middle * scale;
    dy = size.h * scale <= box.clientHeight ? (box.clientHeight - (size.h - 24) * scale) / 2 : 20;
    place();
  }
  function show(d) {
    drawing = d;
    box.style.height = Math.min(innerWidth > 700 ? 600 : 460, Math.max(180, extent().h + 40)) + 'px';
    build();
    begin();
  }

  gestures(box, { move, zoom, tap: e => { const node = e.target.closest('.node'); if (node && inPlan(+node.dataset.op) >= 0) pick(inPlan(+node.dataset.op)); } });
  wheelZoom(box, zoom, move);
  box.addEventListener('keydown', e => {
    const keys = { ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0), ArrowUp: () => move(0, 80), ArrowDown: () => move(0, -80),
      '+': () => zoom(1.3), '=': () => zoom(1.3), '-': () => zoom(1 / 1.3), 0: all };
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  byId('g-in').addEventListener('click', () => zoom(1.4));
  byId('g-out').addEventListener('click', () => zoom(1 / 1.4));
  byId('g-all').addEventListener('click', all);
  const wanted = () => from.drawings[byId('unroll').checked && from.drawings.length > 1 ? 1 : 0];
  byId('unroll').addEventListener('change', () => show(wanted()));
  function choose(which) {
    from = which;
    byId('g-after').setAttribute('aria-pressed', from === after);
    byId('g-before').setAttribute('aria-pressed', from !== after);
    describe();
    show(wanted());
  }
  byId('g-after').addEventListener('click', () => choose(after));
  byId('g-before').addEventListener('click', () => choose(before));
  byId('which').hidden = !before || before.applied.length === 0;
  on('theme', () => { recolour(); drawMap(); });
  on('pick', mark);
  on('resize', begin);
  choose(after);
}
)js";

} // namespace parsearch::io::page
