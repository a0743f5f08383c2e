#pragma once
/// The script of the report's cost curve.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* curve_script = R"js(
if (data.curve.best.filter(c => c !== null).length < 2) byId('search').hidden = true;
else {
  const curve = data.curve, costs = [...curve.best, ...curve.current].filter(c => c !== null && c > 0);
  const low = least(costs), high = most(costs);
  const last = curve.best.length - 1, start = curve.best.find(c => c !== null);
  byId('log').checked = high > 6 * low;
  const digits = time(start) === time(curve.best[last]) ? 7 : 4;
  const effort = `in ${number(curve.seconds[last], 3)} s and ${plural(curve.evaluations[last], 'evaluation')}.`;
  byId('search-p').textContent = (curve.best[last] < start ? `From ${time(start, digits)} to ${time(curve.best[last], digits)} ` : `Nothing better than the start, ${time(start)}, `) + effort
    + ' A cost is the time of an iteration and the penalty for memory that is not there.';
  let byTime = true;

  function ticksOf(from, to, room) {
    const raw = (to - from) / room, base = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(m => m * base).find(s => s >= raw);
    const out = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-9); ++i) out.push(i * step);
    return out;
  }
  function logTicks(from, to) {
    for (const steps of [[1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9]]) {
      const out = [];
      for (let e = Math.floor(Math.log10(from)); e <= Math.ceil(Math.log10(to)); ++e) for (const s of steps) if (s * 10 ** e >= from && s * 10 ** e <= to) out.push(s * 10 ** e);
      if (out.length >= 4 || steps.length > 10) return out.length > 9 ? out.filter(t => [1, 10].includes(+(t / 10 ** Math.floor(Math.log10(t) + 1e-9)).toFixed(6))) : out;
    }
    return [];
  }
  function draw() {
    const w = Math.max(320, byId('curve').clientWidth), h = w < 600 ? 260 : 340, left = 74, right = 14, top = 12, bottom = 34, log = byId('log').checked;
    const xs = byTime ? curve.seconds : curve.evaluations, x1 = Math.max(xs[last], 1e-9);
    // What is far above the start is of no interest where the axis is linear.
    const y0 = log ? low * 0.97 : Math.max(0, low - (Math.min(high, 2 * start) - low) * 0.08), y1 = log ? high * 1.04 : Math.min(high, 2 * start) * 1.02;
    const x = v => left + v / x1 * (w - left - right), scale = log ? Math.log : v => v;
    const y = v => top + (scale(y1) - scale(Math.max(v, y0))) / (scale(y1) - scale(y0)) * (h - top - bottom);
    const clip = el('svg:clipPath', { id: 'plot' }, el('svg:rect', { x: left, y: top, width: w - left - right, height: h - top - bottom }));
    const svg = el('svg:svg', { viewBox: `0 0 ${w} ${h}`, role: 'img', 'aria-label': byId('search-p').textContent }, clip);
    const [unit, unitName] = unitOf(low, TIME), yTicks = log ? logTicks(y0, y1) : ticksOf(y0, y1, 5);
    const gap = yTicks.length > 1 ? Math.min(...yTicks.slice(1).map((t, i) => t - yTicks[i])) : yTicks[0] || 1, digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(gap / unit) + 1e-9)));
    for (const t of yTicks) svg.append(el('svg:line', { x1: left, x2: w - right, y1: y(t), y2: y(t), stroke: 'var(--line)' }),
      el('svg:text', { x: left - 8, y: y(t) + 4, 'text-anchor': 'end' }, grouped(t / unit, digits) + NBSP + unitName));
    for (const t of ticksOf(0, x1, w < 600 ? 4 : 8)) svg.append(el('svg:text', { x: x(t), y: h - 10, 'text-anchor': t === 0 ? 'start' : 'middle' },
      byTime ? number(t, 3).replace(/\.?0+$/, m => m.includes('.') ? '' : m) + NBSP + 's' : count(t)));
    const line = (values, stepwise) => {
      let path = '', pen = false, before = 0;
      values.forEach((v, i) => {
        if (v === null) { pen = false; return; }
        const px = x(xs[i]).toFixed(1), py = y(v).toFixed(1);
        path += !pen ? `M${px} ${py}` : stepwise ? `L${px} ${before}L${px} ${py}` : `L${px} ${py}`;
        pen = true;
        before = py;
      });
      return path;
    };
    svg.append(el('svg:path', { d: line(curve.current, false), fill: 'none', stroke: 'var(--m5)', 'stroke-width': 1, opacity: 0.75, 'clip-path': 'url(#plot)' }),
      el('svg:path', { d: line(curve.best, true), fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2.25, 'stroke-linejoin': 'round' }));
    if (baseline.time > y0 && baseline.time < y1 && baseline.fits && Math.abs(baseline.time / start - 1) > 0.01) svg.append(el('svg:line', { x1: left, x2: w - right, y1: y(baseline.time), y2: y(baseline.time), stroke: 'var(--muted)', 'stroke-dasharray': '2 4' }),
      el('svg:text', { x: w - right, y: y(baseline.time) - 6, 'text-anchor': 'end' }, baseline.name));
    const dot = el('svg:circle', { r: 4, fill: 'var(--accent)', visibility: 'hidden' });
    svg.append(dot);
    svg.addEventListener('pointermove', e => {
      const at = (e.clientX - svg.getBoundingClientRect().left - left) / (w - left - right) * x1;
      let i = xs.findIndex(v => v > at);
      i = i < 0 ? last : Math.max(0, i - 1);
      if (curve.best[i] === null) return;
      dot.setAttribute('cx', x(xs[i]));
      dot.setAttribute('cy', y(curve.best[i]));
      dot.setAttribute('visibility', 'visible');
      showTip(e.clientX, e.clientY, time(curve.best[i], 5), [['current', curve.current[i] === null ? 'infeasible' : time(curve.current[i], 5)],
        ['after', `${number(curve.seconds[i], 3)} s, ${plural(curve.evaluations[i], 'evaluation')}`]]);
    });
    svg.addEventListener('pointerleave', () => { dot.setAttribute('visibility', 'hidden'); hideTip(); });
    byId('curve').replaceChildren(svg, el('div', { class: 'legend', style: 'margin-top:4px' }, el('span', {}, el('i', { style: 'background:var(--accent);height:3px' }), 'best so far'),
      el('span', {}, el('i', { style: 'background:var(--m5);height:3px' }), 'current')));
  }
  const by = timed => { byTime = timed; byId('by-time').setAttribute('aria-pressed', timed); byId('by-count').setAttribute('aria-pressed', !timed); draw(); };
  byId('by-time').addEventListener('click', () => by(true));
  byId('by-count').addEventListener('click', () => by(false));
  byId('log').addEventListener('change', draw);
  on('resize', draw);
  draw();
}
)js";

} // namespace parsearch::io::page
