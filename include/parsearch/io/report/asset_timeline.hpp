#pragma once
/// The script of the report's timeline.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* timeline_script = R"js(
/** The tasks in typed arrays, by row, then start. */
const tasks = (() => {
  const t = data.tasks, bytes = Uint8Array.from(atob(t.packed), c => c.charCodeAt(0));
  const what = new Uint32Array(t.count), nr = new Uint32Array(t.count), start = new Float64Array(t.count), end = new Float64Array(t.count);
  const batch = new Uint32Array(t.count), first = new Uint32Array(t.rows.length + 1);
  let at = 0;
  const next = () => {
    let n = 0;
    for (let scale = 1; ; scale *= 128) {
      const b = bytes[at++];
      n += (b & 127) * scale;
      if (b < 128) return n;
    }
  };
  for (let row = 0, i = 0; row < t.rows.length; ++row) {
    let free = 0;
    for (first[row + 1] = first[row] + t.rows[row]; i < first[row + 1]; ++i) {
      what[i] = next();
      nr[i] = next();
      start[i] = free + next();
      free = end[i] = start[i] + t.durations[next()];
      if (t.batches) batch[i] = next();
    }
  }
  const critical = new Uint8Array(t.count);
  for (const i of t.critical) critical[i] = 1;
  // Devices and links that do the same have one row: `alike` of each, the first of which it is of.
  const alike = t.rows.map(() => []);
  t.row.forEach((n, i) => { if (n >= 0) alike[n].push(i); });
  const from = i => t.row[i] < 0 ? 0 : first[t.row[i]], to = i => t.row[i] < 0 ? 0 : first[t.row[i] + 1];
  return { count: t.count, what, nr, start, end, batch, first, from, to, row: t.row, alike, critical, path: t.critical, whats: t.whats };
})();
const makespan = Math.max(1, data.makespan), deviceCount = data.devices.length;
const ways = [...data.links, ...data.hosts]; // links, and those of devices to their hosts and back
const busy = data.tasks.busy, shade = w => w[7] === 1 ? 5 : w[7] === 3 ? 6 : w[0];
const arrow = name => name.replace(' -> ', ' → ');
const nameOfRow = row => row >= deviceCount ? arrow(ways[row - deviceCount][0])
  : data.devices[row].stages.length ? `device ${row} · stage ${data.devices[row].stages.join(', ')}` : `device ${row}`;

/** What a task does, as io/display/task_names.hpp says it. */
function describe(w) {
  const [kind, op, edge, moves, collective, , , part] = tasks.whats[w], name = i => data.operators[i].name, more = PARTS[part];
  if (kind < 3) return `${name(op)} ${TASKS[kind]}${more}`;
  const [a, b] = edge < 0 ? [op, op] : data.edges[edge];
  const path = a === b ? name(op) : a === op ? `${name(b)} → ${name(a)}` : `${name(a)} → ${name(b)}`;
  return `${path} ${TRAFFIC[moves]}` + (kind === 4 ? `, ${COLLECTIVES[collective]}` : '') + more;
}
function details(i) {
  const [kind, op, , moves, , bytes, devices, part] = tasks.whats[tasks.what[i]], operator = data.operators[op];
  const rows = [];
  const counted = kind < 2 ? 'shard' : kind === 2 ? 'holder' : moves >= 3 ? 'group' : part > 3 ? 'device' : TASKS[kind];
  if (kind < 2) rows.push(['shard', `${tasks.nr[i]} of ${operator.shards}`]);
  else rows.push([counted, String(tasks.nr[i])]);
  if (tasks.batch[i]) rows.push(['micro-batch', String(tasks.batch[i] - 1)]);
  if (kind < 3) rows.push(['configuration', operator.class < 0 ? '–' : data.classes[operator.class][0]], ['type', operator.kind]);
  else rows.push(['carries', memory(bytes)]);
  if (kind === 4) rows.push(['among', plural(devices, 'device')]);
  rows.push(['start', time(tasks.start[i], 6)], ['takes', time(tasks.end[i] - tasks.start[i])]);
  if (tasks.critical[i]) rows.push(['', 'on the critical path']);
  return rows;
}

{ // What the critical path is made of.
  const sums = TASKS.map(() => 0);
  for (const i of tasks.path) sums[shade(tasks.whats[tasks.what[i]])] += tasks.end[i] - tasks.start[i];
  const devices = busy.slice(0, deviceCount), mean = devices.reduce((a, b) => a + b, 0) / deviceCount;
  const links = busy.slice(deviceCount), top = links.indexOf(most(links));
  const low = share(least(devices)), high = share(most(devices));
  let text = low === high ? `${deviceCount > 1 ? 'Every' : 'The'} device computes ${low} of the time.` : `Devices compute ${share(mean)} of the time on average, from ${low} to ${high}.`;
  if (top >= 0 && links[top] > 0) text += ` The busiest link, ${arrow(ways[top][0])}, is in use ${share(links[top])}.`;
  const missing = tasks.row.filter(n => n < 0).length;
  if (missing) text += ` ${plural(missing, 'device or link', 'devices and links')} ${missing > 1 ? 'are' : 'is'} left out of the drawing: there are too many tasks.`;
  byId('time-p').textContent = text;
  const parts = sums.map((s, k) => s > 0 ? [k, s] : null).filter(Boolean);
  if (parts.length) byId('path').append(el('div', { class: 'stack', style: 'height:14px', role: 'img', 'aria-label': 'critical path: ' + parts.map(([k, s]) => `${TASKS[k]} ${share(s / makespan)}`).join(', ') },
    parts.map(([k, s]) => el('i', { style: `width:${100 * s / makespan}%;background:var(--k${k})` }))),
    el('div', { class: 'legend', style: 'margin:6px 0 14px' }, el('b', { style: 'font-weight:600;color:var(--text)' }, 'Critical path'),
      parts.map(([k, s]) => el('span', {}, el('i', { style: `background:var(--k${k})` }), `${TASKS[k]} ${share(s / makespan, 1)}`))));
}

{
  const box = byId('timeline'), canvas = box.querySelector('canvas'), overview = byId('overview');
  const AXIS = 26, FEW = 8, HINT = 'Drag to move, click and then scroll to zoom; arrow keys, + and − do the same.';
  let width = 0, height = 0, gutter = 0, narrow = false, rows = [], t0 = 0, t1 = makespan, colours = [], batchColours = null, hover = -1, chosen = -1, pending = false;

  const isFirst = row => tasks.row[row] >= 0 && tasks.alike[tasks.row[row]][0] === row;
  const deviceRows = data.devices.map((_, d) => d).filter(d => tasks.row[d] >= 0), distinct = deviceRows.filter(isFirst);
  const linkRows = ways.map((_, l) => deviceCount + l).filter(row => tasks.to(row) > tasks.from(row) && (isFirst(row) || distinct.length === deviceRows.length))
    .sort((a, b) => busy[b] - busy[a] || a - b);
  const every = byId('every');
  every.parentNode.hidden = distinct.length === deviceRows.length;
  every.checked = deviceRows.length <= 16;
  const title = row => { const n = tasks.alike[tasks.row[row]].length; return nameOfRow(row) + (n > 1 && !every.checked ? ` and ${n - 1} alike` : ''); };
  const choice = byId('links');
  const option = (value, text) => choice.append(el('option', { value }, text));
  if (linkRows.length > FEW) option(FEW, `busiest ${FEW}`);
  if (linkRows.length) option(linkRows.length, linkRows.length > FEW ? `all ${linkRows.length} used` : `${linkRows.length} used`);
  option(0, 'none');

  /* Colours: an index per thing that is done, and the fill of each index. */
  const types = [...new Set(data.operators.map(o => o.kind))];
  function paint() {
    const mode = byId('colour').value, of = { task: shade, type: w => types.indexOf(data.operators[w[1]].kind), operator: w => w[1], batch: () => 0 }[mode];
    const fill = mode === 'task' ? k => cssColour('--k' + k) : mode === 'batch' ? k => k ? strongOf(k - 1) : cssColour('--muted') : strongOf;
    colours = tasks.whats.map(w => fill(of(w)));
    batchColours = mode === 'batch' ? Array.from({ length: 1 + most([0, ...tasks.batch]) }, (_, k) => fill(k)) : null;
    const seconds = new Map();
    for (let i = 0; i < tasks.count; ++i) { const k = mode === 'batch' ? tasks.batch[i] : of(tasks.whats[tasks.what[i]]); seconds.set(k, (seconds.get(k) || 0) + tasks.end[i] - tasks.start[i]); }
    const word = k => mode === 'task' ? TASKS[k] : mode === 'type' ? types[k] : mode === 'batch' ? k ? `micro-batch ${k - 1}` : 'all of them' : data.operators[k].name;
    const order = [...seconds].sort((a, b) => mode === 'task' || mode === 'batch' ? a[0] - b[0] : b[1] - a[1]);
    byId('legend').replaceChildren(...order.slice(0, 12).map(([k]) => el('span', {}, el('i', { style: `background:${fill(k)}` }), word(k))),
      ...(order.length > 12 ? [el('span', {}, `and ${order.length - 12} more`)] : []));
  }

  const heightOf = row => row < deviceCount ? (deviceCount > 48 ? 15 : 20) : 15;
  function arrange() {
    rows = [];
    let y = 6;
    const add = row => { rows.push({ row, y, h: heightOf(row) }); y += heightOf(row); };
    (every.checked ? deviceRows : distinct).forEach((d, i, all) => {
      if (i && data.devices[d].node !== data.devices[all[i - 1]].node) y += 5;
      add(d);
    });
    const shown = linkRows.slice(0, +choice.value);
    if (shown.length) y += 12;
    shown.forEach(add);
    height = Math.min(AXIS + y + 6, 640);
    width = box.clientWidth;
    narrow = width < 560;
    gutter = Math.min(190, Math.max(84, Math.round(width * 0.16)));
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.cssText = `width:${width}px;height:${height}px;margin-bottom:${AXIS + y + 6 - height}px`;
    box.style.height = height + 'px';
    overview.width = Math.round(width * scale);
    overview.height = Math.round(48 * scale);
  }

  const view = () => ({ k: (width - gutter) / (t1 - t0), x: t => gutter + (t - t0) * (width - gutter) / (t1 - t0) });
  /** The first task of a row from `low` that ends after `t`. */
  function firstAfter(t, low, high) {
    while (low < high) { const mid = (low + high) >> 1; if (tasks.end[mid] > t) high = mid; else low = mid + 1; }
    return low;
  }
  /** Ticks at round times. */
  function ticks(from, to, room) {
    const raw = (to - from) / Math.max(1, room), base = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(m => m * base).find(s => s >= raw);
    const out = [];
    for (let i = Math.ceil(from / step); i * step <= to; ++i) out.push(i * step);
    return { step, out };
  }
  function clipped(ctx, text, room, middle = false) {
    if (ctx.measureText(text).width <= room) return text;
    let n = Math.floor(text.length * room / ctx.measureText(text).width);
    const cut = () => middle ? text.slice(0, Math.ceil(n / 2)) + '…' + text.slice(text.length - Math.floor(n / 2)) : text.slice(0, n) + '…';
    while (n > 1 && ctx.measureText(cut()).width > room) --n;
    return n > 1 ? cut() : '';
  }

  function drawRow(ctx, { row, h }, y) {
    const { k, x } = view(), high = tasks.to(row), only = picked >= 0, top = y + 2, tall = h - 5;
    let fill = null;
    const colourOf = i => batchColours ? batchColours[tasks.batch[i]] : colours[tasks.what[i]];
    for (let i = firstAfter(t0, tasks.from(row), high); i < high && tasks.start[i] < t1; ) {
      const left = Math.max(gutter, x(tasks.start[i])), right = Math.min(width, x(tasks.end[i])), w = tasks.what[i];
      let alpha = only && tasks.whats[w][1] !== picked ? 0.22 : 1;
      if (right - left >= 1) {
        ctx.globalAlpha = alpha;
        if (fill !== colourOf(i)) ctx.fillStyle = fill = colourOf(i);
        ctx.fillRect(left, top, right - left - (right - left > 6 ? 0.75 : 0), tall);
        if (right - left > 44 && tall > 11) {
          ctx.fillStyle = '#fff';
          fill = null;
          ctx.fillText(clipped(ctx, data.operators[tasks.whats[w][1]].name, right - left - 9), left + 4, top + tall / 2 + 0.5);
        }
        ++i;
      } else { // all that starts within this pixel, as one: its colour that of the middle one, its strength the share of time
        const pixel = Math.floor(left), until = t0 + (pixel + 1 - gutter) / k, j = Math.max(i + 1, firstAfter(until, i, high));
        const mid = (i + j) >> 1, m = mid < high ? mid : i;
        if (only) { alpha = 0.22; for (let q = i; q < j && q < i + 64; ++q) if (tasks.whats[tasks.what[q]][1] === picked) { alpha = 1; break; } }
        const filled = j - i > 1 ? 0.35 + 0.65 * Math.min(1, (tasks.end[j - 1] - tasks.start[i]) * k) : Math.max(0.35, Math.min(1, right - left));
        ctx.globalAlpha = alpha * filled;
        if (fill !== colourOf(m)) ctx.fillStyle = fill = colourOf(m);
        ctx.fillRect(pixel, top, 1, tall);
        i = j;
      }
    }
    ctx.globalAlpha = 1;
  }

  function drawCritical(ctx, placeOf) {
    const { x } = view();
    ctx.fillStyle = ctx.strokeStyle = cssColour('--text');
    let lastX = -9, lastY = null;
    for (const i of tasks.path) {
      if (tasks.end[i] < t0 || tasks.start[i] > t1) { lastY = null; continue; }
      const place = placeOf.get(rowOf(i));
      const left = Math.max(gutter, x(tasks.start[i])), right = Math.min(width, x(tasks.end[i]));
      if (place === undefined) { lastY = null; continue; }
      const y = place.y + place.h - 2.5;
      ctx.fillRect(left, y, Math.max(1, right - left), 2);
      if (lastY !== null && lastY !== y && Math.abs(left - lastX) >= 3) {
        ctx.globalAlpha = 0.45;
        ctx.fillRect(left - 0.5, Math.min(y, lastY), 1, Math.abs(y - lastY));
        ctx.globalAlpha = 1;
        lastX = left;
      }
      lastY = y;
    }
  }
  function rowOf(i) {
    let low = 0, high = tasks.first.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (tasks.first[mid + 1] > i) high = mid; else low = mid + 1; }
    return tasks.alike[low][0];
  }

  function draw() {
    pending = false;
    const ctx = canvas.getContext('2d'), scale = devicePixelRatio || 1, { x } = view(), scrolled = box.scrollTop;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, width, height);
    const font = getComputedStyle(document.body).fontFamily, { step, out } = ticks(t0, t1, (width - gutter) / 92);
    ctx.strokeStyle = cssColour('--line');
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const t of out) { const at = Math.round(x(t)) + 0.5; ctx.moveTo(at, AXIS - 5); ctx.lineTo(at, height); }
    ctx.stroke();
    ctx.font = `11px ${font}`;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    const visible = rows.map(r => ({ ...r, y: r.y + AXIS - scrolled })).filter(r => r.y + r.h > AXIS && r.y < height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, AXIS, width, height - AXIS);
    ctx.clip();
    for (const r of visible) drawRow(ctx, r, r.y);
    if (byId('critical').checked) drawCritical(ctx, new Map(visible.map(r => [r.row, r])));
    if (chosen >= 0) {
      const r = visible.find(v => v.row === rowOf(chosen));
      if (r) {
        ctx.strokeStyle = cssColour('--text');
        ctx.lineWidth = 2;
        ctx.strokeRect(Math.max(gutter, x(tasks.start[chosen])), r.y + 1.5, Math.max(2, x(tasks.end[chosen]) - Math.max(gutter, x(tasks.start[chosen]))), r.h - 4);
      }
    }
    // Names of rows, over whatever reaches into their column.
    ctx.fillStyle = cssColour('--surface');
    ctx.fillRect(0, AXIS, gutter - 1, height - AXIS);
    for (const r of visible) {
      ctx.font = `${r.row < deviceCount && r.h > 16 ? 12 : 11}px ${font}`;
      ctx.fillStyle = cssColour(r.row < deviceCount ? '--text' : '--muted');
      ctx.textAlign = 'left';
      ctx.fillText(clipped(ctx, title(r.row), gutter - (narrow ? 18 : 56), true), 12, r.y + r.h / 2);
      if (narrow) continue;
      ctx.textAlign = 'right';
      ctx.fillStyle = cssColour('--muted');
      ctx.fillText(share(busy[r.row]), gutter - 10, r.y + r.h / 2);
    }
    ctx.restore();
    // Axis.
    ctx.font = `11px ${font}`;
    ctx.fillStyle = cssColour('--muted');
    ctx.textAlign = 'left';
    const [unit, unitName] = unitOf(Math.max(t1, step), TIME), digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    for (const t of out) if (x(t) < width - 44) ctx.fillText(grouped(t / unit, Math.min(9, digits)) + NBSP + unitName, x(t) + 4, AXIS / 2);
    ctx.textAlign = 'right';
    if (!narrow) ctx.fillText('busy', gutter - 10, AXIS / 2);
    ctx.strokeStyle = cssColour('--line-strong');
    ctx.beginPath(); ctx.moveTo(0, AXIS - 0.5); ctx.lineTo(width, AXIS - 0.5); ctx.stroke();
    byId('range').textContent = t1 - t0 >= makespan ? time(makespan) : `${time(t0, 5)} – ${time(t1, 5)}`;
    drawOverview();
  }

  /* The whole iteration, above: how many devices are at work, by kind of work. */
  let bins = null;
  function binned() {
    const n = 480, out = [0, 1, 2].map(() => new Float64Array(n)), span = makespan / n;
    for (const d of distinct) {
      const weight = tasks.alike[tasks.row[d]].length / deviceRows.length;
      for (let i = tasks.from(d); i < tasks.to(d); ++i) {
        const kind = tasks.whats[tasks.what[i]][0], a = tasks.start[i], b = tasks.end[i];
        for (let q = Math.floor(a / span); q < n && q * span < b; ++q) out[kind][q] += (Math.min(b, (q + 1) * span) - Math.max(a, q * span)) / span * weight;
      }
    }
    return out;
  }
  function drawOverview() {
    bins = bins || binned();
    const ctx = overview.getContext('2d'), scale = devicePixelRatio || 1, n = bins[0].length, room = width - gutter, tall = 34, floor = 42;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, width, 48);
    ctx.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = 'middle';
    ctx.fillStyle = cssColour('--muted');
    ctx.fillText(clipped(ctx, 'devices at work', gutter - 20), 12, 25);
    for (let q = 0; q < n; ++q) {
      const left = Math.round(gutter + q * room / n), right = Math.round(gutter + (q + 1) * room / n);
      let y = floor;
      for (let kind = 0; kind < 3; ++kind) {
        const h = bins[kind][q] * tall;
        ctx.fillStyle = cssColour('--k' + kind);
        ctx.fillRect(left, y - h, right - left, h);
        y -= h;
      }
    }
    if (t1 - t0 < makespan) {
      const a = gutter + t0 / makespan * room, b = gutter + t1 / makespan * room;
      ctx.globalAlpha = 0.6;
      ctx.fillStyle = cssColour('--surface');
      ctx.fillRect(gutter, 0, a - gutter, 48);
      ctx.fillRect(b, 0, width - b, 48);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = cssColour('--text');
      ctx.strokeRect(a + 0.5, 3.5, Math.max(2, b - a - 1), 41);
    }
  }

  const redraw = () => { if (!pending) { pending = true; requestAnimationFrame(draw); } };
  function look(from, to) {
    const span = Math.min(makespan, Math.max(Math.max(100, makespan * 1e-7), to - from));
    t0 = Math.max(0, Math.min(makespan - span, from + (to - from - span) / 2));
    t1 = t0 + span;
    redraw();
  }
  const move = (dx, dy) => { const dt = -dx * (t1 - t0) / (width - gutter); look(t0 + dt, t1 + dt); if (dy) box.scrollTop -= dy; };
  const zoom = (factor, x) => {
    const at = t0 + Math.max(0, (x === undefined ? (width + gutter) / 2 : x) - gutter) / (width - gutter) * (t1 - t0);
    look(at - (at - t0) / factor, at + (t1 - at) / factor);
  };
  function taskAt(e) {
    const at = box.getBoundingClientRect(), px = e.clientX - at.left, py = e.clientY - at.top;
    if (px < gutter || py < AXIS) return -1;
    const place = rows.find(r => py >= r.y + AXIS - box.scrollTop && py < r.y + AXIS - box.scrollTop + r.h);
    if (!place) return -1;
    const t = t0 + (px - gutter) / (width - gutter) * (t1 - t0), slack = 2 * (t1 - t0) / (width - gutter), high = tasks.to(place.row);
    const i = firstAfter(t, tasks.from(place.row), high);
    if (i < high && tasks.start[i] <= t + slack) return i;
    return i > tasks.from(place.row) && tasks.end[i - 1] >= t - slack ? i - 1 : -1;
  }

  gestures(box, { move, zoom, tap: e => {
    const i = taskAt(e);
    chosen = i === chosen ? -1 : i;
    const op = chosen < 0 ? picked : tasks.whats[tasks.what[chosen]][1];
    if (chosen < 0 ? picked >= 0 : op !== picked) pick(op);
    byId('chosen').textContent = chosen < 0 ? HINT : [describe(tasks.what[chosen]), `on ${nameOfRow(rowOf(chosen))}`, ...details(chosen).map(([a, b]) => `${a} ${b}`)].join(' · ');
    redraw();
  } });
  wheelZoom(box, zoom, move);
  box.addEventListener('scroll', redraw, { passive: true });
  box.addEventListener('pointermove', e => {
    if (e.buttons) return hideTip();
    hover = taskAt(e);
    if (hover >= 0) return showTip(e.clientX, e.clientY, describe(tasks.what[hover]), details(hover));
    const at = box.getBoundingClientRect(), py = e.clientY - at.top - AXIS + box.scrollTop;
    const place = e.clientX - at.left < gutter && e.clientY - at.top > AXIS ? rows.find(r => py >= r.y && py < r.y + r.h) : null;
    if (!place) return hideTip();
    const d = data.devices[place.row], l = ways[place.row - deviceCount];
    showTip(e.clientX, e.clientY, title(place.row), [['busy', share(busy[place.row], 1)], ['tasks', count(tasks.to(place.row) - tasks.from(place.row))],
      ...(d ? [['type', d.kind], ['node', String(d.node)]] : [['rate', traffic(l[1]) + '/s']])]);
  });
  box.addEventListener('pointerleave', hideTip);
  box.addEventListener('keydown', e => {
    const step = (width - gutter) / 8, keys = { ArrowLeft: () => move(step, 0), a: () => move(step, 0), ArrowRight: () => move(-step, 0), d: () => move(-step, 0),
      '+': () => zoom(1.5), '=': () => zoom(1.5), w: () => zoom(1.5), '-': () => zoom(1 / 1.5), s: () => zoom(1 / 1.5), 0: () => look(0, makespan), Home: () => look(0, makespan) };
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  byId('in').addEventListener('click', () => zoom(2));
  byId('out').addEventListener('click', () => zoom(0.5));
  byId('all').addEventListener('click', () => look(0, makespan));
  const slide = e => {
    if (!e.buttons) return;
    const at = (e.clientX - overview.getBoundingClientRect().left - gutter) / (width - gutter) * makespan, half = (t1 - t0) / 2;
    look(at - half, at + half);
  };
  overview.addEventListener('pointerdown', e => {
    if (t1 - t0 >= makespan) zoom(4, e.clientX - overview.getBoundingClientRect().left);
    overview.setPointerCapture(e.pointerId);
    slide(e);
  });
  overview.addEventListener('pointermove', slide);
  byId('colour').addEventListener('change', () => { paint(); redraw(); });
  byId('critical').addEventListener('change', redraw);
  every.addEventListener('change', () => { arrange(); redraw(); });
  if (!data.tasks.batches) byId('colour').querySelector('[value=batch]').remove();
  choice.addEventListener('change', () => { arrange(); redraw(); });
  on('theme', () => { paint(); draw(); });
  on('pick', redraw);
  on('resize', () => { arrange(); redraw(); });
  byId('chosen').textContent = HINT;
  paint();
  arrange();
  draw();
}
)js";

} // namespace parsearch::io::page
