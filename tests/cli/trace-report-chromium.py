"""Checks the pages of imported traces in Chromium; see trace-report-chromium.sh.
usage: trace-report-chromium.py BROWSER FOLDER, where FOLDER has sample/, hostile/, empty/ and cpu/ (test_trace_report --write)."""
import json, os, sys

from chromium import INK, TIP, check, check_looks, with_page

SECTIONS = "[...document.querySelectorAll('main > section')].map(s => s.id)"
ALL = ["overview", "findings", "roadmap", "iteration", "gpu", "corrected", "baseline", "timeline", "kernels", "ops", "peaks", "modules", "python",
       "communication", "launches", "memory", "ranks", "trace"]


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"


def column(section, key):
    return f"""(() => {{ const heads = [...document.querySelectorAll("#{section} th button")].map(b => b.dataset.key);
        return [...document.querySelectorAll("#{section} tbody tr")].map(r => r.children[heads.indexOf("{key}")].textContent); }})()"""


def check_first_screen(b):
    check("title", b.value("document.title"), "rank0 · hone trace")
    check("tiles", b.value(texts(".tile h3")), ["Step as recorded", "Step without profiler", "GPU busy", "Bound by",
                                               "Kernels per step", "Launches per step"])
    check("values", b.value(texts(".tile .value")), ["20.8\u00a0ms", "15.2\u00a0ms", "75.0\u00a0%", "host", "24", "26"])
    check("the name is no path", b.value("document.querySelector('#where b').textContent"), "rank0")
    check("sections", b.value(SECTIONS), ALL)
    check("navigation", b.value("document.querySelectorAll('#nav a').length"), len(ALL))


def check_charts(b, data):
    check("phases", b.value("[...document.querySelectorAll('#iteration .bar')[0].children].map(e => e.textContent)"),
          ["data", "forward", "backward", "optimizer", "other", "communication"])
    check("phases as recorded, and the GPU's part", b.value("[1, 2].map(i => document.querySelectorAll('#iteration .bar')[i].children.length)"), [6, 5])
    check("parts of the mean step", b.value("document.querySelectorAll('#iteration .bar')[3].children.length"), 8)
    check("columns of the steps", b.value("[...document.querySelectorAll('#iteration svg rect')].filter(r => +r.getAttribute('height') > 0.5).length"),
          lambda n: n >= 7 * len(data["steps"]))
    check("busy and idle", b.value("document.querySelectorAll('#gpu .bar')[0].children.length"), 4)
    check("kinds", b.value("document.querySelectorAll('#gpu .bar')[1].children.length"), 3)
    check("recorded against corrected", b.value(texts("#corrected .track + span")),
          ["20.8\u00a0ms", "15.2\u00a0ms", "14.6\u00a0ms", "11.4\u00a0ms", "11.4\u00a0ms", "9.35\u00a0ms", "3.80\u00a0ms"])
    check("the interval", b.value("document.querySelectorAll('#corrected .track u').length"), 1)
    for section in ("launches", "memory"):
        check(f"curve of {section}", b.value(f"document.querySelector('#{section} path.area').getAttribute('d').length"), lambda n: n > 1000)
        b.mouse_over(f"#{section} svg")
        check(f"{section} under the mouse", b.value(TIP), lambda t: bool(t))
    check("straggler", b.value("document.querySelector('#ranks .note').textContent"), lambda t: "rank 1" in t)


def check_tables(b, data):
    check("kernels by time", b.value(column("kernels", "short_name")), [n if len(n) <= 42 else n[:26] + "…" + n[-15:] for n in (k["short_name"] for k in data["kernels"])])
    check("ops against peaks", b.value(column("peaks", "op")), [r["op"] for r in data["roofline"]])
    check("modules by share", b.value(column("modules", "name")), [m["name"] for m in data["modules"]])
    check("functions by self time", b.value(column("python", "name")), [f["name"] for f in data["python"]])
    check("what takes longer", b.value(column("baseline", "name")), [r["name"] for r in data["baseline"]["longer"]])
    b.value("document.querySelector('#kernels button[data-key=\"count\"]').click()")
    b.value("document.querySelector('#kernels button[data-key=\"count\"]').click()")
    check("kernels by count, upwards", b.value(column("kernels", "count")), ["4", "48", "48"])
    check("ops by time on the GPU", b.value(column("ops", "name")), [o["name"] for o in data["ops"]])
    b.value("""(() => { const i = document.querySelector('#ops input'); i.value = 'LINEAR'; i.dispatchEvent(new Event('input')); })()""")
    check("filtered", b.value(column("ops", "name")), ["aten::linear"])


def check_plan(b, data):
    check("findings", b.value("document.querySelectorAll('details.finding').length"), len(data["findings"]))
    check("no matrix of three", b.value("document.querySelectorAll('.matrix').length"), 0)
    check("fixes are code, with their lines", b.value(texts(".finding pre")), [f["fix"] for f in data["findings"]])
    check("what to fix first", b.value("document.querySelector('#finding-1 dd a').getAttribute('href')"), "#finding-0")
    check("phases", b.value(texts(".phases .gain b")), ["1.08×", "1.62×"])
    check("rules of a phase", b.value(texts(".phases li:first-child p a")), ["host-sync", "exposed-comm"])
    check("warnings", b.value(texts(".warnings li")), data["warnings"])


def check_timeline(b):
    check("timeline has boxes", b.value(INK)[0], lambda n: n > 5000)
    b.mouse_over("#timeline canvas", 0.5, 31 / b.value("document.querySelector('#timeline canvas').clientHeight"))
    check("the step's mark under the mouse", b.value(TIP), "ProfilerStep")
    before = b.value(INK)
    b.value("document.querySelectorAll('#timeline .buttons button')[1].click()")
    check("by kind it looks different", b.value(INK) != before)


def checks(b):
    b.open(b.folder + "/sample/report.html")
    with open(b.folder + "/sample/report.json") as f:
        data = json.load(f)
    check_first_screen(b)
    check_charts(b, data)
    check_tables(b, data)
    check_plan(b, data)
    check_timeline(b)
    check_looks(b)
    check("complaints of the sample", b.complaints(), [])
    for name, sections in (("hostile", ALL), ("empty", ["overview", "findings", "iteration", "trace"]),
                           ("cpu", ["overview", "findings", "iteration", "corrected", "baseline", "timeline", "ops", "peaks", "modules", "python", "trace"])):
        b.open(f"{b.folder}/{name}/report.html")
        check(f"sections of {name}", b.value(SECTIONS), sections)
        check(f"the end of {name} is reached", b.value("document.querySelector('footer').textContent"), lambda t: t.startswith("hone"))
        check(f"scripts of {name}", b.value("document.scripts.length"), 3)
        check(f"nothing of {name} sticks out", b.value("document.documentElement.scrollWidth"), lambda w: w <= 1280)
        check(f"complaints of {name}", b.complaints(), [])
        check(f"no number of {name} is none", b.value("/NaN|undefined|Infinity/.test(document.body.innerText)"), False)


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
