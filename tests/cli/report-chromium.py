"""Checks the pages of profiles in Chromium; see report-chromium.sh.
usage: report-chromium.py BROWSER FOLDER, where FOLDER has sample/, bf16/, hostile/ and empty/ (test_report --write)."""
import json, os, sys

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
          ["Step time, median", "Samples per second", "Tokens per second", "MFU", "Memory at its peak"])
    check("bottlenecks", b.value("document.querySelectorAll('#bottlenecks li').length"), 4)
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
    check("parts of the model", parts, lambda t: all(p["name"] in t for p in data["recorded"]["parts"]))
    check("a quiet machine has no warning", b.value("document.getElementById('warning').hidden"))
    targets = b.value(column("target"))
    check("targets", targets, [k["target"] or "–" for k in sorted(data["kinds"], key=lambda k: -k["self_us"])])
    check("there are some", "unfused-optimizer" in targets)


def check_table(b, data):
    by = lambda key, rows, name, sign: [r[name] for r in sorted(rows, key=lambda r: (r[key] is None, sign * (r[key] or 0)))]
    check("kinds by time", b.value(column("kind")), by("self_us", data["kinds"], "kind", -1))
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
    check("first ops", b.value("document.querySelectorAll('.operations tbody tr').length"), 25)
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
    check("every op is a dot", dots + bare, len(data["ops"]))
    check("dots are inside the plot", b.value("""(() => { const s = document.querySelector('#roofline svg'), w = +s.getAttribute('width'), h = +s.getAttribute('height');
        return [...s.querySelectorAll('circle')].every(c => c.cx.baseVal.value > 0 && c.cx.baseVal.value < w && c.cy.baseVal.value > 0 && c.cy.baseVal.value < h); })()"""))
    check("ceilings", b.value("document.querySelectorAll('#roofline .ceiling').length"), len(data["machine"]["peaks"]["levels"]) + 1)
    b.mouse_over("#roofline circle.dot")
    longest = max((o for o in data["ops"] if o["flops"] > 0), key=lambda o: o["self_us"])
    check("the longest op under the mouse", b.value(TIP), lambda t: t and t.startswith(longest["name"]))
    b.focus("#roofline svg")
    b.press("ArrowRight")
    check("the first op by key", b.value(TIP), lambda t: t and t.startswith(longest["name"]))
    check("memory areas", b.value("[...document.querySelectorAll('#memory path.area')].filter(p => p.getAttribute('d').length > 100).length"), 5)
    check("peak", b.value("document.querySelector('#memory .peak-label').textContent"), "peak 189\u00a0MB")
    cells = {(o["layer"], o["kind"]) for o in data["ops"]}
    check("heat map", b.value("document.querySelectorAll('#layers td.cell').length"), len(cells))
    check("findings", b.value("document.querySelectorAll('article.finding').length"), 5)
    check("matrix", b.value("document.querySelectorAll('.matrix a').length"), 5)


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
    check_charts(b, data)
    check_timeline(b)
    check_looks(b)
    check("complaints of the sample", b.complaints(), [])
    check_policy(b)
    check_bf16(b)
    for name in ("hostile", "empty"):
        b.open(f"{b.folder}/{name}/report.html")
        check(f"parts of {name}", b.value("document.querySelectorAll('main > section').length"), 9)
        check(f"the end of {name} is reached", b.value("document.querySelector('footer').textContent"), lambda t: t.startswith("hone"))
        check(f"scripts of {name}", b.value("document.scripts.length"), 3)
        check(f"complaints of {name}", b.complaints(), [])
    b.open(b.folder + "/hostile/report.html")
    check("a warning stands before the numbers", b.value("""(() => { const w = document.getElementById('warning'), t = document.getElementById('tiles');
        return !w.hidden && w.textContent.startsWith("Warning: ") && w.getBoundingClientRect().bottom <= t.getBoundingClientRect().top; })()"""))
    check("names stay text", b.value("document.images.length"), 0)


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
