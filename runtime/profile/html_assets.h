// Style and script of the listing; it must need nothing from outside.
#pragma once

namespace kiln::rt {

inline constexpr const char* kStyle = R"(
:root { color-scheme: light; --ink: #1d2530; --soft: #66707d; --line: #e3e7ec; --hot: 235, 110, 20; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: #fafbfc; }
header { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 4px 22px; align-items: baseline; padding: 10px 24px;
  background: #fff; border-bottom: 1px solid var(--line); }
header h1 { font-size: 16px; margin: 0; } header a { color: #1f5fae; text-decoration: none; margin-right: 12px; }
header label { margin-left: auto; color: var(--soft); } select { font: inherit; }
section { padding: 8px 24px 24px; } h2 { font-size: 18px; margin: 14px 0 6px; } h2 small { font-weight: normal; color: var(--soft); font-size: 14px; }
h3 { font: 600 13px ui-monospace, monospace; margin: 18px 0 6px; } p.note { color: var(--soft); margin: 4px 0 10px; }
table.facts { border-collapse: collapse; } table.facts th { text-align: left; font-weight: normal; color: var(--soft); padding: 1px 18px 1px 0; vertical-align: top; }
.mix { display: flex; height: 14px; max-width: 900px; margin: 12px 0 4px; border-radius: 3px; overflow: hidden; }
.key { display: flex; flex-wrap: wrap; gap: 2px 16px; max-width: 900px; color: var(--soft); font-size: 12px; }
.key i { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 5px; }
.hottest { margin: 10px 0 0; color: var(--soft); } .hottest a { color: #1f5fae; text-decoration: none; margin-left: 10px; font-family: ui-monospace, monospace; font-size: 12px; }
.wide { overflow-x: auto; background: #fff; border: 1px solid var(--line); border-radius: 6px; }
table.listing { border-collapse: collapse; width: 100%; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.listing th { font: 11px system-ui, sans-serif; color: var(--soft); text-align: right; padding: 6px 8px; border-bottom: 1px solid var(--line); white-space: nowrap; vertical-align: bottom; }
.listing th:last-child, .listing td.text { text-align: left; }
.listing td { text-align: right; padding: 0 8px; white-space: pre; } .listing td.text { padding-left: 14px; width: 100%; }
.listing td.no { color: var(--soft); border-right: 1px solid var(--line); }
tr.row { background: rgba(var(--hot), calc(var(--heat, 0) * .55)); }
tbody.has tr.row { cursor: pointer; } tbody.has tr.row:hover { box-shadow: inset 0 0 0 1px rgba(var(--hot), .5); }
tbody.has tr.row td.no::before { content: "▸ "; } tbody.open tr.row td.no::before { content: "▾ "; }
tr.ptx { display: none; tab-size: 2; background: #f3f6f9; color: #3f5064; } tbody.open tr.ptx { display: table-row; } tr.ptx td.text { padding-left: 30px; }
tr.gap td { color: var(--soft); text-align: center; background: #f7f8fa; }
.mark { font: 11px system-ui, sans-serif; border-radius: 8px; padding: 0 7px; margin-left: 10px; white-space: nowrap; }
.mark.conflict { background: #fbdcdc; color: #93191c; } .mark.sectors { background: #fdebc5; color: #7a4a00; } .mark.other { background: #e4e9f7; color: #34408a; }
)";

/// A click on a line shows its PTX; the choice in the head colours the lines anew and lists the hottest.
inline constexpr const char* kScript = R"(
document.addEventListener('click', e => {
  const body = e.target.closest('tbody.has');
  if (body && e.target.closest('tr.row')) body.classList.toggle('open');
});
const choice = document.getElementById('metric');
function colour() {
  for (const section of document.querySelectorAll('section')) {
    const rows = [...section.querySelectorAll('tr.row')], value = r => +(r.dataset[choice.value] || 0);
    const most = Math.max(1, ...rows.map(value)), all = rows.reduce((sum, r) => sum + value(r), 0);
    for (const r of rows) r.style.setProperty('--heat', value(r) / most);
    const hottest = section.querySelector('.hottest');
    hottest.textContent = all ? 'hottest:' : '';
    for (const r of rows.filter(value).sort((a, b) => value(b) - value(a)).slice(0, 6)) {
      const a = document.createElement('a');
      a.href = '#' + r.id;
      const share = 100 * value(r) / all;
      a.textContent = r.dataset.place + ' ' + share.toFixed(share < 10 ? 1 : 0) + ' %';
      hottest.append(a);
    }
  }
}
choice.addEventListener('change', colour);
colour();
)";

}  // namespace kiln::rt
