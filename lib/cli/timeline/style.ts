/** The style sheet of the page: light and dark, narrow and wide. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#fcfcfb, #16181b); --ink: light-dark(#1d2125, #e4e6e8);
  --faint: light-dark(#6a7178, #9aa1a8); --grid: light-dark(#e3e5e8, #2c3035);
  --life: light-dark(#9db7d5, #3d5c80); --seen: light-dark(#33608f, #86b4e6);
  --stop: light-dark(#b4690e, #f0a94a); --late: light-dark(#c62f2f, #ff6b66);
  --closure: light-dark(#a5c9ae, #3d6b4a);
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem); max-width: 90rem;
  background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 0.5rem; }
p { margin: 0.25rem 0; color: var(--faint); }
.chart { overflow-x: auto; margin-top: 1rem; }
.rows { position: relative; min-width: 34rem; padding-bottom: 1.6rem; }
.row { display: grid; grid-template-columns: clamp(8rem, 20%, 16rem) 1fr; height: 1.9rem;
  align-items: center; border-bottom: 1px solid var(--grid); }
.name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding-right: 0.75rem; }
.name small { color: var(--faint); }
.track { position: relative; height: 100%; }
.over { position: absolute; inset: 0; display: grid; pointer-events: none;
  grid-template-columns: clamp(8rem, 20%, 16rem) 1fr; }
.over > div { position: relative; }
.tick { position: absolute; top: 0; bottom: 1.4rem; width: 1px; background: var(--grid); }
.tick span { position: absolute; top: 100%; left: 0; transform: translateX(-50%);
  font-size: 0.75rem; color: var(--faint); white-space: nowrap; padding-top: 0.2rem; }
.bar { position: absolute; top: 26%; height: 48%; min-width: 2px; border-radius: 2px;
  background: var(--life); }
.bar.after { background: color-mix(in srgb, var(--stop) 55%, var(--life)); }
.bar.closure { background: var(--closure); }
.late .bar.after { background: var(--late); } .late .name, td.late { color: var(--late); }
.mark { position: absolute; width: 3px; margin-left: -1px; top: 12%; height: 76%;
  background: var(--seen); border-radius: 1px; }
.mark.full { background: var(--faint); }
.stop { position: absolute; top: 0; bottom: 1.4rem; width: 2px; background: var(--stop); }
.stop.cleared { background: none; border-left: 2px dashed var(--stop); }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin-top: 0.6rem;
  font-size: 0.85rem; color: var(--faint); }
.legend i { display: inline-block; width: 1rem; height: 0.7rem; margin-right: 0.35rem;
  border-radius: 2px; }
.legend i.thin { width: 3px; }
table { border-collapse: collapse; width: 100%; max-width: 60rem; }
th, td { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid var(--grid);
  white-space: nowrap; }
th { font-weight: 600; color: var(--faint); } td.number, th.number { text-align: right; }
td.graph { width: 45%; min-width: 6rem; } td.graph div { height: 0.6rem; border-radius: 2px;
  min-width: 2px; background: var(--life); } td.graph.late div { background: var(--late); }
`;
