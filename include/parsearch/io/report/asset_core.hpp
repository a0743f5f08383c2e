#pragma once
/// What the report's scripts share: data, elements, numbers as text, colours, theme, the operator that is picked.

#include <parsearch/core/compiler.hpp>

namespace parsearch::io::page {

inline constexpr char const* core_script = R"js(
const data = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);

/** An element. Children are elements or texts, which are never read as markup. */
function el(tag, attributes, ...children) {
  const node = tag.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  node.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined));
  return node;
}

/* Numbers. Times are picoseconds, sizes bytes. */
const NBSP = '\u00a0';
function decimals(x, significant) {
  const magnitude = x === 0 ? 0 : Math.floor(Math.log10(Math.abs(x)));
  return Math.min(12, Math.max(0, significant - 1 - magnitude));
}
function grouped(x, digits) {
  const [whole, part] = x.toFixed(digits).split('.');
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return part ? spaced + '.' + part : spaced;
}
const number = (x, significant = 3) => grouped(x, decimals(x, significant));
const count = n => grouped(n, 0);
const plural = (n, one, many = one + 's') => count(n) + NBSP + (n === 1 ? one : many);
function unitOf(x, units) { return units.find(u => Math.abs(x) >= u[0]) || units[units.length - 1]; }
const TIME = [[1e12, 's'], [1e9, 'ms'], [1e6, 'µs'], [1e3, 'ns'], [1, 'ps']];
const BINARY = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];
const DECIMAL = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
function withUnit(x, units, significant = 3) {
  const [scale, name] = unitOf(x, units);
  return (scale === 1 ? count(x) : number(x / scale, significant)) + NBSP + name;
}
const time = (ps, significant = 4) => ps === 0 ? '0' : withUnit(ps, TIME, significant);
const memory = b => b === 0 ? '0' : withUnit(b, BINARY);
const traffic = b => b === 0 ? '0' : withUnit(b, DECIMAL);
const share = (x, digits = 0) => (100 * x).toFixed(digits) + '%';
const rate = x => x >= 100 ? count(x) : number(x, 3);
const times = x => grouped(x, x >= 100 ? 0 : x >= 10 ? 1 : 2) + '×';
const most = list => list.reduce((a, b) => Math.max(a, b), -Infinity), least = list => list.reduce((a, b) => Math.min(a, b), Infinity);
const limited = bytes => bytes < 2 ** 62;

/* Words for the numbers in the data; the order is that of the enumerations in sim/schedule/task_graph.hpp and core/collective.hpp. */
const TASKS = ['forward', 'backward', 'update', 'message', 'collective', 'forward again', 'weight gradients'];
const PARTS = ['', ' again', ' of its block', ' of weights', ' to host', ' from host']; // sim::task_part: 1 and 3 have colours of their own
const TRAFFIC = ['activations', 'gradients', 'partial sums', 'weight gradients', 'weights'];
const COLLECTIVES = ['all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all', 'broadcast', 'reduce'];
const MEMORY = ['weights', 'gradients', 'optimizer', 'activations', 'cache', 'buffers'];

/* Colours come from the style sheet, so that a theme is one set of variables. */
let style = getComputedStyle(document.documentElement);
const cssColour = name => style.getPropertyValue(name).trim();
const HUES = [211, 32, 117, 354, 265, 47, 176, 325, 24, 78, 230, 145];
/** The hue of one of many things; past twelve they are a golden angle apart. */
const hueOf = i => i < HUES.length ? HUES[i] : Math.round(i * 137.508 + 19) % 360;
const fillOf = i => i < 0 ? cssColour('--surface') : `hsl(${hueOf(i)} ${cssColour('--class-s')} ${cssColour('--class-l')})`;
const dark = () => document.documentElement.dataset.theme === 'dark';
const strongOf = i => `hsl(${hueOf(i)} ${dark() ? 45 : 42}% ${dark() ? 60 : 51}%)`;

/** Things to do again when the theme, the picked operator or the size of the window changes. */
const listeners = { theme: [], pick: [], resize: [] };
const on = (what, f) => listeners[what].push(f);
const tell = (what, ...args) => listeners[what].forEach(f => f(...args));

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  style = getComputedStyle(document.documentElement);
  tell('theme');
}
{
  const preference = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try { chosen = localStorage.getItem('parsearch-theme'); } catch { /* a page without storage */ }
  setTheme(chosen === 'dark' || chosen === 'light' ? chosen : preference.matches ? 'dark' : 'light');
  preference.addEventListener('change', e => { if (!chosen) setTheme(e.matches ? 'dark' : 'light'); });
  byId('theme').addEventListener('click', () => {
    chosen = dark() ? 'light' : 'dark';
    try { localStorage.setItem('parsearch-theme', chosen); } catch { /* kept for this visit */ }
    setTheme(chosen);
  });
  let before = null;
  addEventListener('beforeprint', () => { before = document.documentElement.dataset.theme; setTheme('light'); });
  addEventListener('afterprint', () => { if (before) setTheme(before); });
}

/** The operator that the reader has picked, in the timeline, the graph or the list; -1: none. */
let picked = -1;
function pick(op) {
  picked = op === picked ? -1 : op;
  tell('pick');
}
addEventListener('keydown', e => { if (e.key === 'Escape' && picked >= 0) pick(picked); });

/* A tip beside the pointer. */
const tip = byId('tip');
function showTip(x, y, title, rows) {
  tip.replaceChildren(el('b', {}, title), el('dl', {}, rows.map(([term, text]) => [el('dt', {}, term), el('dd', {}, text)])));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, x + 14 + box.width > innerWidth ? x - box.width - 14 : x + 14) + 'px';
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - box.height - 4)) + 'px';
}
const hideTip = () => { tip.hidden = true; };

/** Drag, pinch and tap on an element. `move(dx, dy)`, `zoom(factor, x, y)`, `tap(event)`; x and y within the element. */
function gestures(node, { move, zoom, tap }) {
  const pointers = new Map();
  let travelled = 0;
  node.addEventListener('pointerdown', e => {
    if (e.button > 0) return;
    pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    travelled = 0;
  });
  node.addEventListener('pointermove', e => {
    const last = pointers.get(e.pointerId);
    if (!last) return;
    const now = { x: e.clientX, y: e.clientY };
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== e.pointerId)[1];
      const box = node.getBoundingClientRect(), spread = p => Math.max(8, Math.hypot(p.x - other.x, p.y - other.y));
      zoom(spread(now) / spread(last), (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
    } else {
      travelled += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
      if (travelled > 4) {
        if (!node.hasPointerCapture(e.pointerId)) node.setPointerCapture(e.pointerId);
        move(now.x - last.x, now.y - last.y);
      }
    }
    pointers.set(e.pointerId, now);
  });
  const end = e => {
    if (e.type === 'pointerup' && pointers.has(e.pointerId) && pointers.size === 1 && travelled <= 4) tap(e);
    pointers.delete(e.pointerId);
  };
  for (const type of ['pointerup', 'pointercancel', 'lostpointercapture']) node.addEventListener(type, end);
}

/** The wheel zooms once the element has the focus, or with Ctrl or Command; otherwise the page scrolls on. */
function wheelZoom(node, zoom, move) {
  node.addEventListener('wheel', e => {
    const wanted = e.ctrlKey || e.metaKey || document.activeElement === node;
    if (!wanted) return;
    e.preventDefault();
    const box = node.getBoundingClientRect();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) move(-(e.deltaX || e.deltaY), 0);
    else zoom(Math.exp(-Math.max(-60, Math.min(60, e.deltaY * (e.deltaMode ? 16 : 1))) / 240), e.clientX - box.left, e.clientY - box.top);
  }, { passive: false });
}
)js";

inline constexpr char const* start_script = R"js(
{
  let timer = 0;
  addEventListener('resize', () => { clearTimeout(timer); timer = setTimeout(() => tell('resize'), 80); });
  const links = [...document.querySelectorAll('nav .links a')];
  const sections = links.map(a => document.querySelector(a.hash));
  links.forEach((a, i) => { a.hidden = sections[i].hidden; });
  const mark = () => {
    let at = 0;
    sections.forEach((s, i) => { if (!s.hidden && s.getBoundingClientRect().top < 120) at = i; });
    links.forEach((a, i) => i === at ? a.setAttribute('aria-current', 'true') : a.removeAttribute('aria-current'));
    links[at].parentNode.scrollLeft = links[at].offsetLeft - links[at].parentNode.offsetLeft - 40;
  };
  addEventListener('scroll', mark, { passive: true });
  if (location.hash && document.getElementById(location.hash.slice(1))) document.getElementById(location.hash.slice(1)).scrollIntoView();
  mark();
  Object.assign(document.body.dataset, { ready: 'true', makespan: data.makespan, operators: data.operatorCount, lines: data.lines.length,
    devices: data.devices.length, rows: data.devices.length + data.links.length + data.hosts.length, tasks: data.tasks.count,
    ways: document.querySelectorAll('#net .way').length, applied: data.rewriting ? data.rewriting.applied.length : 0 });
}
)js";

} // namespace parsearch::io::page
