"""Checks the pages of hone tune in Chromium; see tune-report-chromium.sh.
usage: tune-report-chromium.py BROWSER FOLDER, where FOLDER has sample/, empty/, vain/, taken-back/, interrupted/ and hostile/ (test_tune_report --write)."""
import json, os, sys

from chromium import TIP, check, check_looks, with_page

SECTIONS = ["overview", "waterfall", "predictions", "points", "gates", "batches", "sizes", "roadmap", "dropped", "config"]


TRIED = "[...document.querySelectorAll('dt')].find(e => e.textContent === 'Tried').nextSibling.textContent"


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"


def check_first_screen(b):
    check("title", b.value("document.title"), "sample · hone tune")
    check("headline", b.value("document.querySelector('h1').textContent"), "A step is 1.37 times as fast as the program without passes (1.33 to 1.41), memory 262 → 124 MB")
    check("tiles", b.value(texts(".tile h3")), ["Speed-up", "Step", "Tokens per second", "MFU", "Whole run", "Memory, planned"])
    check("values", b.value(texts(".tile .value")), ["1.37×", "29.2\u00a0ms", "70.1\u00a0k", "41.1\u00a0%", "88.2\u00a0s", "124\u00a0MB"])
    check("against what", b.value(texts(".tile p")), ["1.33× to 1.41×, against the program without passes", "without passes 40.0\u00a0ms", "without passes 51.2\u00a0k",
                                                      "without passes 30.0\u00a0%", "without passes 121\u00a0s", "without passes 262\u00a0MB"])
    check("what was kept", b.value(texts("#kept a")), ["flash-attention", "batch-size", "fuse-loss"])
    check("what it saves", b.value(texts("#kept .gain .muted")), [" · so far 1.25× · saves 23.8\u00a0s of 121\u00a0s", " · so far 1.38× · saves 8.64\u00a0s of 121\u00a0s", " · so far 1.38×"])


def box(selector):
    return f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return [r.left, r.right]; }})()"


def check_waterfall(b, data):
    check("rows", b.value("document.querySelectorAll('#waterfall .falls > li').length"), len(data["stages"]) + 3)   # base, tuned, axis
    check("kept ones are coloured", b.value("document.querySelectorAll('#waterfall .fall-track > .won').length"), sum(s["kept"] for s in data["stages"]))
    check("others are hollow", b.value("document.querySelectorAll('#waterfall .fall-track > .hollow').length"), sum(not s["kept"] for s in data["stages"]))
    check("each has its prediction", b.value("document.querySelectorAll('#waterfall .fall-track > b').length"), len(data["stages"]))
    left, right = b.value(box("#waterfall .base"))
    won_left, won_right = b.value(box("#stage-0 .won"))
    check("the first bar ends where the base ends", abs(won_right - right), lambda d: d < 1)
    check("and is as long as what was won", (won_right - won_left) / (right - left), lambda x: abs(x - 0.2) < 0.01)
    next_left, next_right = b.value(box("#stage-1 .won"))
    check("the second begins there", abs(next_right - won_left), lambda d: d < 1)
    mark, _ = b.value(box("#stage-0 .fall-track > b"))
    check("the prediction is at 40 ms / 1.30", (mark + 1.5 - left) / (right - left), lambda x: abs(x - 1 / 1.3) < 0.01)
    b.mouse_over("#stage-2")
    check("the reason under the mouse", b.value("document.querySelector('#tip').textContent"), lambda t: "slower: × 0.960" in t and "fused-optimizer: dropped" in t)
    b.focus("#stage-3")
    check("a bar by key", b.value(TIP), "fuse-loss: kept")
    check("its words", b.value("document.activeElement.getAttribute('aria-label')"),
          lambda t: t and "predicted 0.99×" in t and "no slower, and memory falls" in t)
    b.press("Escape")
    check("Escape closes it", b.value(TIP), None)


def check_tables(b, data):
    check("rows of the table", b.value("document.querySelectorAll('#predictions tbody tr').length"),
          sum(s["measured_speedup"] is not None for s in data["stages"]))
    check("a row", b.value(texts("#predictions tbody tr:first-child td")),
          ["flash-attention", "1.30×", "1.25×", "1.22× to 1.29×", "96 (8)", "+4.0\u00a0%", "kept", "1.25×", "medium", "4", "optimize.passes: + flash-attention"])
    check("the median error", b.value("document.querySelector('#predictions .note').textContent"), lambda t: "4.5\u00a0%" in t)
    check("before and after", b.value("document.querySelectorAll('#points .track i').length"), 14)
    check("the whole run", b.value("document.querySelector('#points .words').textContent"),
          "The whole run is 3000 steps, and 600\u00a0ms of evaluation. Of its 121\u00a0s, flash-attention saves 23.8\u00a0s, batch-size saves 8.64\u00a0s.")
    check("larger batches", b.value(texts("#batches .words")), lambda t: t[0] == "Larger batch: no: a larger one wins less than 5 %; 16 fits, 32 does not" and t[1].startswith("sweet spot: 8"))
    check("their table", b.value(texts("#batches tbody tr:first-child td")), ["8", "40.0\u00a0ms", "200", "51.2\u00a0k", "262\u00a0MB", "sweet spot"])
    check("what does not fit", b.value(texts("#batches tbody tr:last-child td")), lambda t: t[0] == "32" and t[-1] == "does not fit")
    check("a size", b.value(texts("#sizes tbody tr:first-child td")),
          ["8 × 128", "18.0\u00a0ms", "14.4\u00a0ms", "1.25×", "throughput: no verdict", "142\u00a0k", "8 × 128", "90.0\u00a0MB", "60.0\u00a0MB", "−33\u00a0%"])
    check("sizes are sorted", b.value(texts("#sizes tbody td:first-child")), lambda t: t[-6:] == [f"8 × {2 ** i}" for i in range(7, 12)] + ["16 × 256"])
    check("no dashes", b.value(texts("#sizes td, #predictions td")), lambda t: "–" not in t)
    check("dropped", b.value(texts("#dropped dt")), ["fused-optimizer", "fuse-qkv + fuse-residual-norm + hoist-constants"])
    check("the difference", b.value(texts("#config .diff span")), lambda lines: "-   passes: none\n" in lines and "+   batch_size: 16\n" in lines)
    check("the command", b.value("document.querySelectorAll('#config pre')[1].textContent"),
          "hone train tuned.yaml\nhone verify base.yaml tuned.yaml --set verify.min_gain=0 --set verify.memory=1.021")
    check("gates", b.value(texts("#gates tbody td:nth-child(2)")), ["pass"] * 6)
    check("references", b.value("document.querySelector('#answers').textContent"),
          lambda t: "1.00× (0.98× to 1.02×) against the program with all passes" in t and "all hold, from the program without passes" in t)


def check_plot_and_plan(b, data):
    check("lines", b.value("[...document.querySelectorAll('#sizes .length-line')].map(p => p.getAttribute('d').split('L').length)"), [5, 5])
    check("a length that does not fit is hollow", b.value("document.querySelectorAll('#sizes circle.hollow').length"), 1)
    check("and says so", b.value(texts("#sizes tbody td")), lambda t: t[t.index("8 × 2048"):][1:3] == ["6.39\u00a0GB (does not fit)", "919\u00a0MB"])
    check("the peak of MFU", b.value("document.querySelector('#answers').textContent"), lambda t: "MFUof 80.0 GFLOP/s in f32" in t)
    b.focus("#sizes svg")
    b.press("ArrowLeft")
    check("a length by key", b.value(TIP), "1024 tokens")
    b.value("document.activeElement.blur()")
    check("matrix", b.value("document.querySelectorAll('#roadmap .matrix a').length"), len(data["roadmap"]))
    check("a cell of it", b.value(texts("#roadmap tbody tr:nth-child(1) td:nth-child(3) a")), ["flash-attention 1.30× ✓"])
    check("phases", b.value(texts("#roadmap .plan > li > b")), lambda t: [x.split(":")[0] for x in t] == ["Quick wins", "Rewrites", "Trades"])
    check("ideas", b.value(texts("#roadmap .ideas .chip")), [d["outcome"] for d in data["roadmap"]])


def checks(b):
    b.open(b.folder + "/sample/report.html")
    with open(b.folder + "/sample/report.json") as f:
        data = json.load(f)
    check_first_screen(b)
    check_waterfall(b, data)
    check_tables(b, data)
    check_plot_and_plan(b, data)
    check("what was tried", b.value(TRIED), lambda t: t.startswith(f"{sum(s['measured_speedup'] is not None for s in data['stages'])} of {len(data['stages'])} stages, 3 kept, "))
    check_looks(b)
    check("complaints of the sample", b.complaints(), [])
    without = {"empty": ["predictions", "gates", "sizes", "batches"], "vain": ["points", "gates"], "taken-back": ["points"], "interrupted": ["gates", "sizes"],
               "hostile": ["predictions"]}
    for name in ("empty", "vain", "taken-back", "interrupted", "hostile"):
        b.open(f"{b.folder}/{name}/report.html")
        check(f"parts of {name}", b.value("[...document.querySelectorAll('main > section')].map(s => s.id)"),
              [s for s in SECTIONS if s not in without.get(name, [])])
        check(f"the end of {name} is reached", b.value("document.querySelector('footer').textContent"), lambda t: t.startswith("hone"))
        check(f"scripts of {name}", b.value("document.scripts.length"), 3)
        check(f"no NaN in {name}", b.value("/NaN|undefined|null/.test(document.querySelector('main').innerText.replace(/on_nan/g, ''))"), False)
        if name == "taken-back":                            # its time was spent, and yet all stages were tried
            check("all stages were tried", b.value(TRIED), lambda t: " stages, all that promised something, 0 kept, " in t)
        check_looks(b)
        check(f"complaints of {name}", b.complaints(), [])
    check("names stay text", b.value("document.images.length"), 0)


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
