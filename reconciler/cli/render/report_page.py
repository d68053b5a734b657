"""The style and the script of the HTML report, as they stand in the page."""

from __future__ import annotations

STYLE = """
:root{--bg:#f5f6f8;--card:#fff;--ink:#1b1f24;--soft:#5c6570;--line:#dfe3e8;--code:#eef0f3;
--failed:#b3261e;--delete:#c4372d;--confirm:#9a5b00;--held:#6a4bd8;--auto:#1a7f37;--rest:#6e7781;
--plus:#e4f5e8;--plusink:#0f5a26;--minus:#fdeaea;--minusink:#8f1d18}
@media(prefers-color-scheme:dark){:root{--bg:#0f1216;--card:#171b21;--ink:#e6e9ee;--soft:#98a2b0;--line:#2a313b;
--code:#222933;--failed:#ff8a80;--delete:#ff8f86;--confirm:#f0b357;--held:#b7a3ff;--auto:#6fd08c;--rest:#98a2b0;
--plus:#12301d;--plusink:#a6ecbb;--minus:#3a1a1b;--minusink:#ffb9b3}}
*{box-sizing:border-box}
[hidden]{display:none!important}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
-webkit-text-size-adjust:100%}
header,main,nav,footer,noscript{display:block;max-width:60rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.75rem}
h1{margin:0;font-size:1.7rem;line-height:1.2;overflow-wrap:anywhere}
.over{margin:0;color:var(--soft);font-size:.8rem;letter-spacing:.06em;text-transform:uppercase}
.headline{margin:.35rem 0 .9rem;font-size:1.1rem}
code,pre,del,ins,.where{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.86em}
header dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;margin:0 0 1rem;font-size:.9rem}
header dt{color:var(--soft)}
header dd{margin:0;overflow-wrap:anywhere}
a{color:inherit}
.filters{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;gap:.5rem .75rem;align-items:center;
padding-top:.6rem;padding-bottom:.6rem;background:var(--bg);border-bottom:1px solid var(--line)}
.risks{display:flex;flex-wrap:wrap;gap:.4rem}
button,select{font:inherit;font-size:.85rem;color:inherit;background:var(--card);border:1px solid var(--line);
border-radius:999px;padding:.3rem .7rem;min-height:2.1rem}
select{border-radius:.5rem;max-width:60vw}
button{cursor:pointer;display:inline-flex;align-items:center;gap:.4rem}
button[aria-pressed=false]{opacity:.5;background:transparent;text-decoration:line-through}
button:focus-visible,select:focus-visible,summary:focus-visible,.picture:focus-visible{outline:2px solid var(--held);
outline-offset:2px}
.filters label{font-size:.85rem;color:var(--soft);display:flex;align-items:center;gap:.4rem}
.dot{width:.6rem;height:.6rem;border-radius:50%;background:var(--c)}
.failed{--c:var(--failed)}.delete{--c:var(--delete)}.confirm{--c:var(--confirm)}.held{--c:var(--held)}
.auto{--c:var(--auto)}.at-rest{--c:var(--rest)}
main{padding-top:1rem}
.home{background:var(--card);border:1px solid var(--line);border-top:3px solid var(--c);border-radius:.6rem;
margin:0 0 1rem;padding:0 1rem}
.home>summary{display:flex;flex-wrap:wrap;gap:.35rem .75rem;align-items:center;justify-content:space-between;
padding:.7rem 0;cursor:pointer;list-style:none}
.home>summary::-webkit-details-marker{display:none}
.title{overflow-wrap:anywhere;min-width:0}
.title::before{content:"▸";display:inline-block;width:1.1em;color:var(--soft)}
.home[open]>summary .title::before{content:"▾"}
.harness,.where,.note,.said{color:var(--soft)}
.harness{font-size:.85rem}
.where{margin:-.35rem 0 .6rem;overflow-wrap:anywhere;font-size:.78rem}
.chips{display:flex;flex-wrap:wrap;gap:.3rem}
.chip{font-size:.76rem;border:1px solid var(--c);color:var(--c);border-radius:999px;padding:.05rem .55rem;
white-space:nowrap}
.home p{margin:.25rem 0;overflow-wrap:anywhere}
.home>.where{margin-top:-.35rem}
.home>.why{font-weight:600}
.home>p:last-child{padding-bottom:.6rem}
ul{list-style:none;margin:0 0 .75rem;padding:0}
.row{border-left:4px solid var(--c);padding:.5rem 0 .5rem .8rem;margin:.45rem 0;border-radius:2px}
.row+.row{border-top:0}
.what{display:flex;flex-wrap:wrap;gap:.2rem .6rem;align-items:baseline}
.word{color:var(--c);font-weight:650;font-size:.85rem}
.name{font-size:.92rem;overflow-wrap:anywhere}
.row .why,.note,.next{font-size:.88rem}
.row .why{color:var(--soft)}
.rule{font-size:.78rem;color:var(--confirm);border:1px solid var(--confirm);border-radius:.3rem;padding:0 .4rem}
.note::before{content:"note: "}
.next code{background:var(--code);border-radius:.3rem;padding:.1rem .35rem;overflow-wrap:anywhere}
.fields{margin:.35rem 0 0;display:grid;grid-template-columns:fit-content(13rem) minmax(0,1fr);gap:.25rem .9rem}
.fields dt{color:var(--soft);font-size:.85rem;overflow-wrap:anywhere}
.fields .said{display:block;font-size:.78rem;font-style:italic}
.fields dd{margin:0;min-width:0}
del,ins{display:inline-block;max-width:100%;text-decoration:none;border-radius:.3rem;padding:.08rem .4rem;
margin:0 .35rem .2rem 0;
overflow-wrap:anywhere;white-space:pre-wrap}
del{background:var(--minus);color:var(--minusink)}
del::before{content:"− "}
ins{background:var(--plus);color:var(--plusink)}
ins::before{content:"+ "}
.diff{margin:0 0 .3rem;background:var(--code);border-radius:.4rem;padding:.35rem 0;overflow-x:auto;
max-height:26rem;overflow-y:auto}
.diff span{display:block;padding:0 .6rem;white-space:pre-wrap;overflow-wrap:anywhere}
.diff .plus{background:var(--plus);color:var(--plusink)}
.diff .minus{background:var(--minus);color:var(--minusink)}
.order{margin:0 0 1rem;border-top:1px dashed var(--line);padding-top:.5rem}
.order summary{cursor:pointer;color:var(--soft);font-size:.88rem}
.picture{overflow-x:auto;padding:.6rem 0}
svg{display:block;max-width:none}
svg text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--ink)}
svg rect{fill:var(--card);stroke:var(--line)}
svg .bar{fill:var(--c);stroke:none}
.edge{fill:none;stroke:var(--rest);stroke-width:1.4}
.tip{fill:var(--rest)}
.none{color:var(--soft);text-align:center;padding:2rem 0}
footer{color:var(--soft);font-size:.85rem;padding-bottom:2.5rem}
noscript{color:var(--soft)}
@media(max-width:34rem){.fields{grid-template-columns:minmax(0,1fr);gap:.1rem}.fields dd{margin-bottom:.35rem}
.home{padding:0 .75rem}header,main,nav,footer{padding-left:.75rem;padding-right:.75rem}h1{font-size:1.45rem}
.filters{position:static}}
@media print{.filters{display:none}.home{break-inside:auto}.row{break-inside:avoid}.diff{max-height:none}}
"""

SCRIPT = """
(function(){
var bar=document.querySelector('.filters'),select=bar.querySelector('select');
var homes=[].slice.call(document.querySelectorAll('main>.home'));
var buttons=[].slice.call(bar.querySelectorAll('button'));
function show(){
var off={},seen=0;
buttons.forEach(function(b){if(b.getAttribute('aria-pressed')==='false')off[b.dataset.risk]=true});
homes.forEach(function(home,number){
var rows=[].slice.call(home.querySelectorAll('.row')),left=0;
rows.forEach(function(row){row.hidden=!!off[row.dataset.risk];if(!row.hidden)left++});
home.hidden=(select&&select.value&&select.value!=='h'+number)||(rows.length?!left:!!off[home.dataset.risk]);
if(!home.hidden)seen++});
document.querySelector('.none').hidden=seen>0}
buttons.forEach(function(b){b.addEventListener('click',function(){
b.setAttribute('aria-pressed',b.getAttribute('aria-pressed')==='true'?'false':'true');show()})});
if(select)select.addEventListener('change',show);
bar.hidden=false})();
"""
