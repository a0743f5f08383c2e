#pragma once
/// The script of the report's summary and comparison.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* summary_script = R"js(
const strategies = data.strategies, found = strategies[data.found], baseline = strategies[0];

{ // Headline.
  const [scale, unit] = unitOf(found.time, TIME);
  const figure = (value, small, label) => el('div', { class: 'figure' }, el('div', { class: 'value' }, value, small ? el('small', {}, small) : null),
    el('div', { class: 'label' }, label));
  const figures = [figure(number(found.time / scale, 4), unit, 'per iteration')];
  const speedUp = baseline.time / found.time;
  if (found !== baseline && baseline.speedUp > 0) figures.push(figure(times(speedUp), '', (speedUp >= 1 ? 'as fast as ' : 'the speed of ') + baseline.name));
  const large = found.rate >= 1e6;
  figures.push(figure(large ? number(found.rate / 1e6, 3) : rate(found.rate), (large ? 'M ' : '') + found.unit + '/s', 'throughput'));
  if (found.utilisation > 0) figures.push(figure((100 * found.utilisation).toFixed(1), '%', 'of the devices’ peak flops'));
  const [memoryScale, memoryUnit] = unitOf(found.use, BINARY);
  figures.push(figure(number(found.use / memoryScale, 3), memoryUnit,
    limited(found.memory) ? `of ${memory(found.memory)} on the fullest device` : 'on the fullest device'));
  const subtitle = [data.model, data.cluster, data.search].filter(Boolean).join(' · ');
  const facts = [['Operators', count(data.operatorCount)], ['Parameters', count(data.parameters)], ['Devices', count(data.devices.length)],
    ['Links', count(data.links.length)], ...data.options];
  byId('summary').append(el('h1', {}, data.title), el('div', { class: 'quiet' }, subtitle), el('div', { class: 'figures' }, figures));
  if (!found.fits)
    byId('summary').append(el('p', { class: 'warn' }, `This plan does not fit: device ${found.fullest} needs ${memory(found.use)} and has ${memory(found.memory)}.`));
  if (data.plan.length)
    byId('summary').append(el('p', {}, `The plan: ${found.name}.`), el('ul', { class: 'notes', id: 'plan' }, data.plan.map(line => el('li', {}, line))));
  byId('summary').append(el('details', {}, el('summary', {}, 'What was asked for'),
    el('dl', { class: 'facts' }, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))))));
  if (data.notes.length) byId('summary').append(el('ul', { class: 'notes' }, data.notes.map(n => el('li', {}, n))));
  byId('footer').textContent = ['parsearch ' + data.version, data.generated, 'Times are those of the simulation.'].filter(Boolean).join(' · ');
}

/** A stacked bar; parts without size are left out. */
const stack = (values, total, prefix, words) => el('span', { class: 'stack', role: 'img', 'aria-label': values.map((v, k) => `${words[k]} ${traffic(v)}`).join(', ') },
  values.map((v, k) => v > 0 ? el('i', { style: `width:${100 * v / total}%;background:var(--${prefix}${k})`, title: `${words[k]} ${traffic(v)}` }) : null));
const legendOf = (words, prefix) => words.map((w, k) => el('span', {}, el('i', { style: `background:var(--${prefix}${k})` }), w));

/** A table whose rows become cards on narrow screens. Columns: [heading, class, cell of a row]. */
function table(name, columns, rows, rowClass) {
  return el('table', { class: name }, el('thead', {}, el('tr', {}, columns.map(([heading, kind]) => el('th', { class: kind, scope: 'col' }, heading)))),
    el('tbody', {}, rows.map((row, i) => el('tr', { class: rowClass(row, i) }, columns.map(([heading, kind, cell]) => el('td', { class: kind, 'data-label': heading }, cell(row, i)))))));
}

{ // Comparison.
  const longest = Math.max(...strategies.map(s => s.time)), widest = Math.max(1, ...strategies.map(s => s.moved.reduce((a, b) => a + b, 0)));
  const [scale, unit] = unitOf(Math.min(...strategies.map(s => s.time)), TIME);
  const digits = decimals(Math.min(...strategies.map(s => s.time)) / scale, 4);
  const mark = (row, i) => i === data.found ? 'found' : '';
  const against = r => Math.abs(r - 1) < 0.005 ? 'is as fast' : r < 1 ? `takes ${share(r)} of its time` : `takes ${number(r, 3)} times as long`;
  const others = strategies.filter((s, i) => i !== data.found && s.fits).sort((a, b) => a.time - b.time);
  byId('strategies-p').textContent = others.length === 0 ? 'The same simulation prices every strategy.'
    : `The same simulation prices every strategy. Of the others that fit, ${others[0].name} is the fastest; this plan ${against(found.time / others[0].time)}.`;
  const used = s => limited(s.memory) && s.memory > 0 ? el('span', { class: 'track' }, el('span', { class: 'bar', style: `width:${Math.min(100, 100 * s.use / s.memory)}%;background:var(${s.fits ? '--k0' : '--bad'})` })) : '';
  byId('strategies-t').append(table('strategies cards', [
    ['Strategy or plan', '', s => s.name],
    [`Time (${unit})`, 'n', s => grouped(s.time / scale, digits)],
    ['', 'wide', s => el('span', { class: 'track' }, el('span', { class: 'bar', style: `width:${100 * s.time / longest}%` }))],
    ['Speed-up', 'n', s => s.speedUp > 0 ? times(s.speedUp) : '?'],
    [found.unit[0].toUpperCase() + found.unit.slice(1) + '/s', 'n', s => rate(s.rate)],
    ['Utilisation', 'n', s => s.utilisation > 0 ? share(s.utilisation, 1) : '–'],
    ...(strategies.some(s => s.cost !== s.time) ? [['Cost with memory', 'n', s => s.cost === null ? 'infinite' : time(s.cost)]] : []),
    ['Peak memory', 'n', s => memory(s.peak)],
    ['', 'wide', used],
    ['Fits', '', s => s.fits ? el('span', { class: 'good' }, 'yes') : el('span', { class: 'bad' }, 'no')],
  ], strategies, mark));
  byId('moved-t').append(table('strategies cards', [
    ['Strategy or plan', '', s => s.name],
    ...TRAFFIC.slice(0, 4).map((word, k) => [word[0].toUpperCase() + word.slice(1), 'n', s => traffic(s.moved[k])]),
    ['Total', 'n', s => traffic(s.moved.reduce((a, b) => a + b, 0))],
    ['', 'wide', s => stack(s.moved, widest, 't', TRAFFIC)],
  ], strategies, mark), el('div', { class: 'legend', style: 'margin-top:10px' }, legendOf(TRAFFIC.slice(0, 4), 't')));
}

if (data.rewriting && data.rewriting.applied.length) { // What rules made of the model's operators.
  const { before, applied, operatorCount } = data.rewriting, plain = strategies[before];
  byId('rewriting').hidden = false;
  const ratio = plain.time / found.time;
  byId('rewriting-p').textContent = `Rules changed operators: ${plural(data.operatorCount, 'operator')} in the place of the model’s ${count(operatorCount)}, which compute the same. `
    + `Compared are the simulated iterations of this plan and of the best that the same search found for the model’s own operators: `
    + (ratio >= 1.005 ? `this plan is ${times(ratio)} as fast.` : ratio <= 0.995 ? `this plan takes ${times(1 / ratio)} the time.` : 'they are as fast.');
  const longest = Math.max(plain.time, found.time), moved = s => traffic(s.moved.reduce((a, b) => a + b, 0));
  byId('rewriting-t').append(table('strategies cards', [
    ['Operators', '', r => r[0]], ['Number', 'n', r => count(r[1])], ['Time', 'n', r => time(r[2].time)],
    ['', 'wide', r => el('span', { class: 'track' }, el('span', { class: 'bar', style: `width:${100 * r[2].time / longest}%` }))],
    ['Bytes moved', 'n', r => moved(r[2])], ['Peak memory', 'n', r => memory(r[2].peak)],
  ], [['of the model', operatorCount, plain], ['rewritten', data.operatorCount, found]], (row, i) => i === 1 ? 'found' : ''));
  byId('rewriting-l').append(el('ol', { class: 'rules' }, applied.map(rule =>
    el('li', {}, rule.split(/(?<=[|&+.])/).flatMap(part => [part, el('wbr')]))))); // names of what was merged are long
}
)js";

} // namespace parsearch::io::page
