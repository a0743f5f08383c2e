#pragma once
/// The script of the report's lists of operators and parameters.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* operators_script = R"js(
{
  const classOf = new Map(data.classes.map(([text], i) => [text, i])), limit = 500;
  const computing = data.operators.map((o, op) => ({ ...o, op })).filter(o => o.class >= 0);
  const swatch = c => el('span', { class: 'swatch', style: `background:${fillOf(c)}` });
  const head = words => el('thead', {}, el('tr', {}, words.map(w => el('th', { scope: 'col', class: w === 'Count' || w === 'Shards' ? 'n' : '' }, w))));
  const cell = (text, kind) => el('td', { class: kind || '' }, text);
  byId('operators-p').textContent = data.lines.length < computing.length
    ? `${plural(computing.length, 'operator')} in ${plural(data.lines.length, 'line')}: those that differ in nothing but numbers in their names share one.`
    : plural(computing.length, 'operator') + ', each with its configuration.';

  function grouped() {
    return el('table', { class: 'operators' }, head(['Operator', 'Count', 'Type', 'Output', 'Configuration']), el('tbody', {}, data.lines.map(([name, n, kind, shape, text]) =>
      el('tr', {}, cell(name), cell(count(n), 'n'), cell(kind), cell(shape, 'mono quiet'), el('td', { class: 'mono' }, swatch(classOf.get(text)), text)))));
  }
  function single(list) {
    return el('table', { class: 'operators' }, head(['Operator', 'Type', 'Output', 'Shards', 'Split', 'Configuration']), el('tbody', {}, list.slice(0, limit).map(o => {
      const row = el('tr', { 'data-op': o.op, class: o.op === picked ? 'picked' : '' }, cell(o.name), cell(o.kind), cell(o.shape, 'mono quiet'), cell(count(o.shards), 'n'),
        cell(o.split.join(', ') || 'whole'), el('td', { class: 'mono' }, swatch(o.class), data.classes[o.class][0]));
      row.addEventListener('click', () => pick(o.op));
      return row;
    })));
  }
  function show() {
    const wanted = byId('filter').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const matches = wanted.length === 0 ? computing : computing.filter(o => {
      const text = `${o.name} ${o.kind} ${o.shape} ${data.classes[o.class][0]}`.toLowerCase();
      return wanted.every(w => text.includes(w));
    });
    const only = picked >= 0 && wanted.length === 0 ? computing.filter(o => o.op === picked) : [];
    byId('filter-n').textContent = wanted.length ? `${plural(matches.length, 'operator')}${matches.length > limit ? `, the first ${limit} shown` : ''}` : only.length ? 'picked:' : '';
    byId('operators-t').replaceChildren(...(wanted.length || (data.lines.length === computing.length && computing.length <= limit) ? [single(matches)] : [...(only.length ? [single(only)] : []), grouped()]));
  }
  byId('filter').addEventListener('input', show);
  on('theme', show);
  on('pick', show);
  show();
}

{ // Parameters.
  const tensors = data.weights.reduce((sum, [, n]) => sum + n, 0);
  byId('parameters').hidden = tensors === 0;
  byId('parameters-p').textContent = `${plural(tensors, 'tensor')} of ${plural(data.parameters, 'element')}`
    + (data.weights.length < tensors ? `, in ${plural(data.weights.length, 'line')}: those that differ in nothing but numbers in their names share one.` : '.');
  byId('parameters-t').append(table('parameters', [['Parameter', '', r => r[0]], ['Count', 'n', r => count(r[1])], ['Shape of each', 'mono quiet', r => r[2]],
    ['Elements', 'n', r => count(r[3])]], data.weights, () => ''));
}
)js";

} // namespace parsearch::io::page
