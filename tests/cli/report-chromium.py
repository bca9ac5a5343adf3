"""Checks the pages of profiles in Chromium; see report-chromium.sh.
usage: report-chromium.py BROWSER FOLDER, where FOLDER has sample/, bf16/, hostile/ and empty/ (test_report --write)."""
import json, os, re, sys

from chromium import INK, TIP, check, check_looks, with_page


def column(key):
    """The shown texts of a column of the operations table."""
    return f"""(() => {{ const heads = [...document.querySelectorAll(".operations th button")].map(b => b.dataset.key);
        return [...document.querySelectorAll(".operations tbody tr")].map(r => r.children[heads.indexOf("{key}")].textContent); }})()"""


def click(selector):
    return f"document.querySelector('{selector}').click()"


def check_first_screen(b):
    check("title", b.value("document.title"), "tiny<script>alert(1)</script>llama · hone profile")
    check("headline", b.value("document.querySelector('h1').textContent"), lambda t: t.startswith("Memory traffic of attention bounds"))
    check("model", b.value("document.querySelector('#where b').textContent"), "tiny<script>alert(1)</script>llama")
    check("tiles", b.value("[...document.querySelectorAll('.tile h3')].map(h => h.textContent)"),
          ["Step time, median", "Samples per second", "Tokens per second", "MFU", "Memory, planned"])
    check("what to do stands first", b.value("document.querySelectorAll('main > section')[1].id"), "findings")
    check("parts of the split", b.value("document.querySelectorAll('#iteration .bar')[0].children.length"), 3)     # the others are too short
    check("every part has a size", b.value("[...document.querySelectorAll('#iteration .bar span')].every(s => s.getBoundingClientRect().width >= 1)"))


def check_one_step_time(b, data):
    """What the card says is what the sentences and the timeline say."""
    step = b.value("document.querySelector('.tile .value').textContent")
    check("the card", step, lambda t: abs(float(t.split("\u00a0")[0]) * {"µs": 1, "ms": 1e3, "s": 1e6}[t.split("\u00a0")[1]] / data["step"]["median_us"] - 1) < 0.006)
    check("the step of the iteration", b.value("document.querySelector('#iteration .note').textContent"), lambda t: t.startswith(f"Of the step's {step}, ops work for "))
    check("the step of the timeline", b.value("document.querySelector('#timeline').textContent"), lambda t: f"the median step without recording: {step}." in t)
    check("three bars", b.value("[...document.querySelectorAll('#iteration h3')].map(h => h.textContent)"),
          ["Parts of the step", "What was done (ops with their gradients)", "Work of the ops by part of the model (with gradients)"])
    parts = b.value("[...document.querySelectorAll('#iteration .legend')].pop().textContent")
    check("parts of the model", parts, lambda t: all(p["name"] in t for p in data["recorded"]["parts"] if p["share"] >= 0.0005))
    check("a quiet machine has no warning", b.value("document.getElementById('warning').hidden"))
    targets = b.value(column("target"))
    check("targets", targets, [k["target"] or "–" for k in sorted(data["kinds"], key=lambda k: -k["self_us"])][:12])
    check("there are some", "unfused-optimizer" in targets)


def check_table(b, data):
    by = lambda key, rows, name, sign: [r[name] for r in sorted(rows, key=lambda r: (r[key] is None, sign * (r[key] or 0)))]
    check("kinds by time", b.value(column("kind")), by("self_us", data["kinds"], "kind", -1)[:12])
    b.value(click("#operations .plain"))
    check("all kinds", b.value(column("kind")), by("self_us", data["kinds"], "kind", -1))
    b.value(click("#operations .plain"))
    b.value(click('.operations button[data-key="efficiency"]'))
    check("sorted downwards", b.value("document.querySelector('th[aria-sort=descending]').textContent"), "roofline")
    down = b.value(column("efficiency"))
    check("roofline downwards", [float(t.split()[0]) for t in down], lambda v: v == sorted(v, reverse=True) and v[0] > v[-1])
    b.value(click('.operations button[data-key="efficiency"]'))
    check("roofline upwards", b.value(column("efficiency")), lambda v: v == sorted(v, key=lambda t: float(t.split()[0])))
    b.value(click('.operations button[data-key="kind"]'))
    check("kinds by name", b.value(column("kind")), lambda v: v == sorted(v))
    check("the header keeps the focus", b.value("document.activeElement.dataset.key"), "kind")
    b.value("document.querySelectorAll('#operations .buttons button')[1].click()")
    check("first ops", b.value("document.querySelectorAll('.operations tbody tr').length"), 12)
    b.value(click("#operations .plain"))
    check("all ops", b.value("document.querySelectorAll('.operations tbody tr').length"), len(data["ops"]))
    b.value("""(() => { const i = document.querySelector('#operations input'); i.value = 'Softmax backward';
        i.dispatchEvent(new Event('input')); })()""")
    b.mouse_over(".operations tbody td")
    check("a row under the mouse", b.value(TIP), lambda t: t and t.endswith(".attn.softmax.grad"))
    check("filtered", b.value(column("name")), lambda v: sorted(v) == [f"blocks.{i}.attn.softmax.grad" for i in range(4)])


def check_charts(b, data):
    dots = b.value("document.querySelectorAll('#roofline circle.dot').length")
    bare = b.value("document.querySelectorAll('#roofline .no-flops i').length")
    check("every op of 1 µs and more is a dot", dots + bare, sum(o["self_us"] >= 1 for o in data["ops"]))
    check("ticks are plain numbers", b.value("[...document.querySelectorAll('#roofline .tick text')].map(t => t.textContent)"),
          lambda t: t and all(re.fullmatch(r"10*|0\.0*1", x) for x in t))
    check("dots are inside the plot", b.value("""(() => { const s = document.querySelector('#roofline svg'), w = +s.getAttribute('width'), h = +s.getAttribute('height');
        return [...s.querySelectorAll('circle')].every(c => c.cx.baseVal.value > 0 && c.cx.baseVal.value < w && c.cy.baseVal.value > 0 && c.cy.baseVal.value < h); })()"""))
    check("ceilings", b.value("document.querySelectorAll('#roofline .ceiling').length"), len(data["machine"]["peaks"]["levels"]) + 1)
    check_labels(b, data)
    b.mouse_over("#roofline circle.dot")
    longest = max((o for o in data["ops"] if o["flops"] > 0), key=lambda o: o["self_us"])
    check("the longest op under the mouse", b.value(TIP), lambda t: t and t.startswith(longest["name"]))
    b.focus("#roofline svg")
    b.press("ArrowRight")
    check("the first op by key", b.value(TIP), lambda t: t and t.startswith(longest["name"]))
    check("memory areas", b.value("[...document.querySelectorAll('#memory path.area')].filter(p => p.getAttribute('d').length > 100).length"), 5)
    check("peak", b.value("document.querySelector('#memory .peak-label').textContent"), "values 189\u00a0MB")
    shown = [k["kind"] for k in sorted(data["kinds"], key=lambda k: -k["self_us"])][:12]
    cells = {(o["layer"], o["kind"] if o["kind"] in shown else "other kinds") for o in data["ops"]}
    check("heat map", b.value("document.querySelectorAll('#layers td.cell').length"), len(cells))
    check("its sums", b.value("[...document.querySelectorAll('#layers tr')].pop().lastChild.textContent"), shown_us(data["recorded"]["op_self_us"]))


def shown_us(us):
    return f"{us / 1000:.0f}\u00a0ms" if us >= 99950 else f"{us / 1000:.1f}\u00a0ms"


def check_labels(b, data):
    """The longest ops are named, and no name touches a dot or another name."""
    longest = sorted((o for o in data["ops"] if o["flops"] > 0), key=lambda o: -o["self_us"])[:5]
    check("names in the roofline", b.value("[...document.querySelectorAll('#roofline .dot-label')].map(t => t.textContent)"),
          lambda t: len(t) >= 3 and set(t) <= {o["name"] for o in longest})
    check("names are clear of dots and of each other", b.value("""(() => {
        const boxes = s => [...document.querySelectorAll('#roofline ' + s)].map(e => e.getBoundingClientRect()), names = boxes('.dot-label');
        const far = (n, d) => Math.hypot(Math.max(n.left - d.x, 0, d.x - n.right), Math.max(n.top - d.y, 0, d.y - n.bottom)) >= d.r - 0.5;
        const dots = boxes('circle.dot').map(c => ({x: (c.left + c.right) / 2, y: (c.top + c.bottom) / 2, r: c.width / 2}));
        return names.every((n, i) => dots.every(d => far(n, d)) &&
            names.every((m, k) => k <= i || n.right <= m.left || m.right <= n.left || n.bottom <= m.top + 2 || m.bottom <= n.top + 2)); })()"""))


def check_plan(b, data):
    check("findings", b.value("document.querySelectorAll('details.finding').length"), 5)
    check("the first is open", b.value("[...document.querySelectorAll('details.finding')].map(d => d.open)"), [True] + 4 * [False])
    check("gains with their intervals", b.value("[...document.querySelectorAll('.finding .gain')].map(g => g.textContent)")[:2],
          ["1.27× 1.18× to 1.36×", "1.06× 1.03× to 1.08×"])
    check("options to copy", b.value("[...document.querySelectorAll('.finding pre')].map(p => p.textContent)"),
          [f["option"] for f in data["findings"] if f["option"]])
    check("copied", b.value("""new Promise(done => { let text; document.addEventListener('copy', () => { text = document.activeElement.value || getSelection().toString(); }, {once: true});
        navigator.clipboard && (navigator.clipboard.writeText = t => { text = t; return Promise.resolve(); });
        const button = document.querySelector('#finding-0 .copy'); button.click(); setTimeout(() => done([text, button.textContent]), 50); })"""),
          [data["findings"][0]["option"], "Copied"])
    check("counts", b.value("document.querySelector('#findings .note').textContent"), lambda t: t.startswith("5 findings: 1 high, 1 medium, 3 low."))
    check("matrix", b.value("document.querySelectorAll('.matrix a').length"), 5)
    check("phases", b.value("[...document.querySelectorAll('.phases .gain b')].map(g => g.textContent)"), ["1.09×", "1.38×", "1.42×"])
    check("the step after each", b.value("[...document.querySelectorAll('.phases .gain .muted')].map(g => g.textContent.replace(/\\u00a0/g, ' ').split('· ')[1])"),
          ["step 46.0 ms", "step 36.0 ms", "step 35.0 ms"])
    check("check list", b.value("[...document.querySelectorAll('.checks li')].map(l => l.textContent)"), [c["text"] for c in data["checks"]])
    b.value("location.hash = '#finding-3'")
    b.settle()
    check("a link opens its finding", b.value("document.getElementById('finding-3').open"))
    b.value("location.hash = ''")
    b.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    b.settle()
    check("on a phone the matrix is a list", b.value("""(() => { const t = document.querySelector('.matrix'), shown = e => getComputedStyle(e).display !== 'none';
        return [shown(t.tHead), [...t.querySelectorAll('td')].filter(shown).length, getComputedStyle(t.querySelector('td:not(.empty)')).display]; })()"""), [False, 4, "block"])
    b.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    b.settle()


def check_timeline(b):
    before = b.value(INK)
    check("timeline has boxes", before[0], lambda n: n > 5000)
    b.mouse_over("#timeline canvas", 0.5, 0.7)        # the second thread, which has no gaps
    check("an op under the mouse", b.value(TIP),
          lambda t: t and "blocks." in t)
    b.focus("#timeline canvas")
    b.press("+")
    b.settle()
    check("zoom changes it", b.value(INK) != before)
    b.press("0")
    b.settle()
    check("and the whole step comes back", b.value(INK), before)


def check_bf16(b):
    b.open(b.folder + "/bf16/report.html")
    with open(b.folder + "/bf16/report.json") as f:
        data = json.load(f)
    check("tokens of rows that samples share", b.value("document.querySelectorAll('.tile p')[2].textContent.replace(/\\u00a0/g, ' ')"), "1.02 k per step, 12.5 % padding")
    check("the peak of MFU", b.value("[...document.querySelectorAll('.tile')].map(t => t.textContent)[3]"), lambda t: "bf16 peak 160 GFLOP/s" in t)
    check("both ceilings", b.value("document.querySelectorAll('#roofline .ceiling').length"), len(data["machine"]["peaks"]["levels"]) + 2)
    check("both peaks", b.value("document.querySelector('#machine table').textContent"),
          lambda t: "matrix product, f3280.0 GFLOP/s" in t and "matrix product, bf16160 GFLOP/s" in t)
    check("complaints of bf16", b.complaints(), [])


def check_policy(b):
    """A script and a style that were slipped in do nothing."""
    b.value("""(() => { const s = document.createElement('script'); s.textContent = 'window.slipped = 1'; document.body.append(s);
        const t = document.createElement('div'); t.id = 'slip'; t.setAttribute('style', 'width: 7px'); document.body.append(t); })()""")
    check("a script without the nonce", b.value("typeof window.slipped"), "undefined")
    check("a style without the nonce", b.value("document.getElementById('slip').getBoundingClientRect().width"), lambda w: w != 7)


def checks(b):
    b.open(b.folder + "/sample/report.html")
    with open(b.folder + "/sample/report.json") as f:
        data = json.load(f)
    check_first_screen(b)
    check_one_step_time(b, data)
    check_table(b, data)
    check_plan(b, data)
    check_charts(b, data)
    check_timeline(b)
    check_looks(b)
    check("complaints of the sample", b.complaints(), [])
    check_policy(b)
    check_bf16(b)
    for name in ("hostile", "empty"):
        b.open(f"{b.folder}/{name}/report.html")
        check(f"parts of {name}", b.value("document.querySelectorAll('main > section').length"), {"hostile": 10, "empty": 9}[name])
        check(f"the end of {name} is reached", b.value("document.querySelector('footer').textContent"), lambda t: t.startswith("hone"))
        check(f"scripts of {name}", b.value("document.scripts.length"), 3)
        check(f"complaints of {name}", b.complaints(), [])
    b.open(b.folder + "/hostile/report.html")
    check("a warning stands before the numbers", b.value("""(() => { const w = document.getElementById('warning'), t = document.getElementById('tiles');
        return !w.hidden && w.textContent.startsWith("Warning: ") && w.getBoundingClientRect().bottom <= t.getBoundingClientRect().top; })()"""))
    check("names stay text", b.value("document.images.length"), 0)


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
