#pragma once
/// The script of the report's memory: at the fullest moment, and over time.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* memory_script = R"js(
{ // Memory: devices that need the same are one line.
  const groups = new Map();
  data.devices.forEach((d, i) => {
    const key = JSON.stringify([d.use, d.memory]);
    if (!groups.has(key)) groups.set(key, { device: d, total: d.use.reduce((a, b) => a + b, 0), members: [] });
    groups.get(key).members.push(i);
  });
  const ranges = list => {
    const parts = [];
    for (let i = 0, j; i < list.length; i = j) {
      for (j = i + 1; j < list.length && list[j] === list[j - 1] + 1; ++j);
      parts.push(j - i > 1 ? `${list[i]}–${list[j - 1]}` : `${list[i]}`);
    }
    return (list.length > 1 ? 'devices ' : 'device ') + (parts.length > 6 ? parts.slice(0, 5).join(', ') + ` and ${list.length - 5} more` : parts.join(', '));
  };
  const lines = [...groups.values()].sort((a, b) => a.members[0] - b.members[0]);
  const widest = Math.max(1, most(lines.map(l => Math.max(l.total, limited(l.device.memory) ? l.device.memory : 0))));
  const row = l => {
    const lane = el('div', { class: 'lane' }, el('div', { class: 'stack', role: 'img', 'aria-label': l.device.use.map((b, k) => `${MEMORY[k]} ${memory(b)}`).join(', ') },
      l.device.use.map((b, k) => b > 0 ? el('i', { style: `width:${100 * b / widest}%;background:var(--m${k})` }) : null)));
    if (limited(l.device.memory)) lane.append(el('span', { class: 'cap', style: `left:calc(${100 * l.device.memory / widest}% - 2px)` }));
    const over = limited(l.device.memory) && l.total > l.device.memory;
    lane.addEventListener('pointermove', e => showTip(e.clientX, e.clientY, ranges(l.members), [...l.device.use.map((b, k) => [MEMORY[k], memory(b)]),
      ['together', memory(l.total)], ['has', limited(l.device.memory) ? memory(l.device.memory) : 'no limit'], ['type', l.device.kind]]));
    lane.addEventListener('pointerleave', hideTip);
    return [el('div', { class: 'name' }, ranges(l.members)), lane, el('div', { class: over ? 'n bad' : 'n' }, memory(l.total), limited(l.device.memory) ? el('span', { class: 'quiet' }, ` of ${memory(l.device.memory)}`) : null)];
  };
  const few = 24, chart = el('div', { class: 'memory' });
  const show = n => chart.replaceChildren(...lines.slice(0, n).flatMap(row));
  show(few);
  byId('memory-p').textContent = 'Bytes at the fullest moment of an iteration. The line is what a device has'
    + (data.devices.length > lines.length ? '; devices that need the same share a bar.' : '.');
  byId('memory-l').append(...legendOf(MEMORY, 'm'));
  byId('memory-l').style.marginBottom = '14px';
  byId('memory-c').append(chart);
  if (lines.length > few) {
    const more = el('button', { type: 'button', style: 'margin-top:12px' }, `Show all ${lines.length}`);
    more.addEventListener('click', () => { show(lines.length); more.remove(); });
    byId('memory-c').append(more);
  }
}

if (data.memoryOverTime.length) { // A step chart of one device.
  const choice = byId('memory-d'), chart = byId('memory-o');
  byId('memory-over').hidden = false;
  data.memoryOverTime.forEach(({ device }, i) => choice.append(el('option', { value: i }, nameOfRow(device))));
  function drawOverTime() {
    const { device, time: at, bytes } = data.memoryOverTime[+choice.value], has = data.devices[device].memory, left = 74, low = 22, tall = 190;
    const wide = Math.max(320, chart.clientWidth), top = 1.06 * Math.max(most(bytes), limited(has) ? has : 0, 1);
    const x = t => left + (wide - left - 8) * t / makespan, y = b => 8 + (tall - low - 8) * (1 - b / top);
    let line = `M${x(0)} ${y(bytes[0])}`;
    for (let i = 1; i < at.length; ++i) line += `H${x(at[i])}V${y(bytes[i])}`;
    line += `H${x(makespan)}`;
    const label = (text, px, py, anchor) => el('svg:text', { x: px, y: py, 'text-anchor': anchor, 'font-size': 11, fill: cssColour('--muted') }, text);
    const fullest = bytes.indexOf(most(bytes));
    chart.replaceChildren(el('svg:svg', { viewBox: `0 0 ${wide} ${tall}`, role: 'img', style: 'width:100%;display:block',
      'aria-label': `memory of ${nameOfRow(device)}: ${memory(bytes[0])} at first, ${memory(bytes[fullest])} at most, at ${time(at[fullest])}` },
      el('svg:path', { d: `${line}V${y(0)}H${x(0)}Z`, fill: cssColour('--m3'), 'fill-opacity': 0.35 }),
      el('svg:path', { d: line, fill: 'none', stroke: cssColour('--m3'), 'stroke-width': 1.5 }),
      ...(limited(has) ? [el('svg:path', { d: `M${x(0)} ${y(has)}H${x(makespan)}`, stroke: cssColour('--text'), 'stroke-width': 2, 'stroke-dasharray': '5 4' }),
        label(`has ${memory(has)}`, wide - 10, y(has) + 14, 'end')] : []),
      label(memory(bytes[fullest]), left - 6, y(bytes[fullest]) + 4, 'end'), ...(Math.abs(y(bytes[0]) - y(bytes[fullest])) > 14 ? [label(memory(bytes[0]), left - 6, y(bytes[0]) + 4, 'end')] : []),
      label('0', left, tall - 6, 'start'), label(time(makespan), wide - 8, tall - 6, 'end')));
  }
  choice.addEventListener('change', drawOverTime);
  on('theme', drawOverTime);
  on('resize', drawOverTime);
  drawOverTime();
}
)js";

} // namespace parsearch::io::page
